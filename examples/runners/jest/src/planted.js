// Faults that the variable PLANTED names, one a word.
const isPlanted = (fault) => (process.env.PLANTED ?? '').split(' ').includes(fault);

let calls = 0;

exports.passesWithout = (fault) => {
  calls += 1;
  // Earlier tests of the file spoil what this one needs.
  if (fault === 'breakage' && calls > 1 && isPlanted('polluted')) throw new Error('planted: polluted');
  if (isPlanted(fault)) throw new Error(`planted: ${fault}`);
};

// Ends this process, or the runner that started it, once the results of earlier tests are sent.
exports.diesWith = async (fault) => {
  if (!isPlanted(fault)) return;
  await new Promise((resolve) => setTimeout(resolve, 300));
  process.kill(fault === 'killed' ? process.ppid : process.pid, 'SIGKILL');
  await new Promise(() => {});
};
