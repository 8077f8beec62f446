//! The HTTP layer: route table, middleware, parameters, errors, one file a resource.
