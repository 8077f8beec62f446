// Faults that the variable PLANTED names, one a word.
const isPlanted = (fault) => (process.env.PLANTED ?? '').split(' ').includes(fault);

export const passesWithout = (fault) => {
  if (isPlanted(fault)) throw new Error(`planted: ${fault}`);
};

// Ends this process, or the runner that started it, once the results of earlier tests are sent.
export const diesWith = async (fault) => {
  if (!isPlanted(fault)) return;
  await new Promise((resolve) => setTimeout(resolve, 300));
  process.kill(fault === 'killed' ? process.ppid : process.pid, 'SIGKILL');
  await new Promise(() => {});
};
