/** How sources become what is shipped: the esbuild options of every bundle, used by the build and by tests of bundles. */
import type { BuildOptions } from 'esbuild'
import { builtins } from './builtins.ts'
import { errorNames } from './error-names.ts'
import { leftOut } from './left-out.ts'

export const bundleOptions = {
  bundle: true,
  platform: 'node',
  target: 'node24',
  format: 'esm',
  // Short names are a quarter of what is loaded. `manifests/bundle/trace.ts` gives a stack trace its names back.
  minify: true,
  // Licences travel in one file instead.
  legalComments: 'none',
  // The policy engine reads its WebAssembly beside its own file; package.json says where that is.
  external: ['#cedar'],
  alias: {
    // Its main file is UMD, whose inner `require` no bundler follows.
    'jsonc-parser': 'jsonc-parser/lib/esm/main.js',
    // Of a CommonJS package everything stays, and of those that it requires: 0.2 MB.
    '@smithy/signature-v4': '@smithy/signature-v4/dist-es/index.js',
  },
  plugins: [leftOut, builtins, errorNames],
  // What undici asks for its own build in Node: without its second parser, an experiment.
  define: { esbuildDetection: 'true' },
} as const satisfies BuildOptions

/** Beside every program that checks documents, by these names: `schemas/parts/load.ts`. */
export const bundleParts = {
  'cel-library': 'schemas/parts/cel-library.ts',
  'pattern-library': 'schemas/parts/pattern-library.ts',
  'schema-library': 'schemas/parts/schema-library.ts',
} as const
