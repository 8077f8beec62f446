import { defineConfig } from '@playwright/test';

export default defineConfig({
  testDir: 'e2e',
  reporter: [['json', { outputFile: 'results.json' }]],
  projects: [{ name: 'chromium' }, { name: 'Mobile Chrome' }],
});
