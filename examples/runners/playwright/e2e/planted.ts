import { test } from '@playwright/test';

// Faults that the variable PLANTED names, one a word.
const isPlanted = (fault: string) => (process.env.PLANTED ?? '').split(' ').includes(fault);

export const passesWithout = (fault: string, project: string) => {
  if (isPlanted(fault) && project === test.info().project.name) throw new Error(`planted: ${fault}`);
};

// Ends this process, or the runner that started it.
export const diesWith = (fault: string) => {
  if (isPlanted(fault)) process.kill(fault === 'killed' ? process.ppid : process.pid, 'SIGKILL');
};
