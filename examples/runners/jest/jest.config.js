module.exports = {
  // A limit, so that tests run in a process of their own even if they are few.
  workerIdleMemoryLimit: '1GB',
};
