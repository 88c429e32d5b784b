/** How sources become what is shipped: the esbuild options of every bundle, used by the build and by tests of bundles. */
import type { BuildOptions } from 'esbuild'
import { leftOut } from './left-out.ts'

export const bundleOptions = {
  bundle: true,
  platform: 'node',
  target: 'node24',
  format: 'esm',
  // Names stay, so that stack traces can be read.
  minifyWhitespace: true,
  minifySyntax: true,
  // Licences travel in one file instead.
  legalComments: 'none',
  // The policy engine reads its WebAssembly beside its own file; package.json says where that is.
  external: ['#cedar'],
  // Its main file is UMD, whose inner `require` no bundler follows.
  alias: { 'jsonc-parser': 'jsonc-parser/lib/esm/main.js' },
  plugins: [leftOut],
  // CommonJS packages inside the bundle ask for Node's own modules through `require`.
  banner: {
    js: "import{createRequire as gatehouseCreateRequire}from'node:module';const require=gatehouseCreateRequire(import.meta.url);",
  },
} as const satisfies BuildOptions
