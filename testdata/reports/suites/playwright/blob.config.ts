import { defineConfig } from '@playwright/test';
export default defineConfig({
  testDir: './tests', timeout: 2000, retries: 2, workers: 2, fullyParallel: true,
  reporter: [['blob', { outputDir: 'blob' }], ['json', { outputFile: 'results.json' }]],
  use: { baseURL: 'http://127.0.0.1:4173' },
  webServer: { command: 'node src/server.mjs', url: 'http://127.0.0.1:4173/price', reuseExistingServer: false },
  projects: [{ name: 'api', testMatch: 'api/**' }],
});
