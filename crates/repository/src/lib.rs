//! The only user of the database: schema, pool, reads and the import transaction.
