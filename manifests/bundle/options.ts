/** The esbuild options for every bundle, shared by the build and the bundle tests. */
import type { BuildOptions } from 'esbuild'
import { builtins } from './builtins.ts'
import { classNames } from './class-names.ts'
import { leftOut } from './left-out.ts'

export const bundleOptions = {
  bundle: true,
  platform: 'node',
  target: 'node24',
  format: 'esm',
  // Short names make the loaded code a quarter smaller. `manifests/bundle/trace.ts` restores the names in a stack
  // trace.
  minify: true,
  // Omits license comments, because a separate file contains all licenses.
  legalComments: 'none',
  // The policy engine reads its WebAssembly from its own folder; package.json contains the path.
  external: ['#cedar'],
  alias: {
    // Selects the package's ES module, because its main file is UMD and bundlers do not follow the inner `require`.
    'jsonc-parser': 'jsonc-parser/lib/esm/main.js',
    // Selects ES modules, because the bundler cannot tree-shake CommonJS packages, which costs 0.2 MB.
    '@smithy/signature-v4': '@smithy/signature-v4/dist-es/index.js',
  },
  plugins: [leftOut, builtins, classNames],
  // Disables undici's second parser, which is experimental.
  define: { esbuildDetection: 'true' },
} as const satisfies BuildOptions

/**
 * Files to place next to every program that validates documents, with the names that `schemas/parts/load.ts` expects.
 */
export const bundleParts = {
  'cel-library': 'schemas/parts/cel-library.ts',
  'pattern-library': 'schemas/parts/pattern-library.ts',
  'schema-library': 'schemas/parts/schema-library.ts',
} as const
