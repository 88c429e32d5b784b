/** Bundles generated source text and its imports into one module. */
import { resolve } from 'node:path'
import { build } from 'esbuild'

export async function generatedModule(contents: string): Promise<string> {
  const { outputFiles } = await build({
    stdin: { contents, resolveDir: resolve(import.meta.dirname), loader: 'js' },
    absWorkingDir: resolve(import.meta.dirname, '../..'),
    bundle: true,
    write: false,
    format: 'esm',
    platform: 'neutral',
    mainFields: ['module', 'main'],
    minifyWhitespace: true,
    minifySyntax: true,
    legalComments: 'none',
    logLevel: 'silent',
  })
  return outputFiles[0]?.text ?? ''
}
