import { test } from '@playwright/test';

// Faults that the variable PLANTED names, one a word.
const isPlanted = (fault: string) => (process.env.PLANTED ?? '').split(' ').includes(fault);

let calls = 0;

export const passesWithout = (fault: string, project: string) => {
  calls += 1;
  // Earlier tests of the process spoil what this one needs.
  const isPolluted = fault === 'breakage' && calls > 1 && isPlanted('polluted');
  if (isPolluted && project === test.info().project.name) throw new Error('planted: polluted');
  if (isPlanted(fault) && project === test.info().project.name) throw new Error(`planted: ${fault}`);
};

// Ends this process, or the runner that started it.
export const diesWith = (fault: string) => {
  if (isPlanted(fault)) process.kill(fault === 'killed' ? process.ppid : process.pid, 'SIGKILL');
};
