/**
 * Bundles the console's pages: index.html, app.js with its lazily loaded chunks, and app.css.
 *
 * Fails when the total size that browsers must download exceeds the budget.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { build } from 'esbuild'

/** Size budgets in bytes, after compression with gzip. */
const budgets = { entry: 30 * 1024, scripts: 60 * 1024, styles: 8 * 1024, page: 2 * 1024 }

export interface ConsoleSizes {
  /** Files that a browser loads before it shows the first page. */
  readonly entry: number
  readonly scripts: number
  readonly styles: number
  readonly page: number
}

export interface ConsoleBundle {
  /** Paths of all bundled sources, relative to the root. */
  readonly inputs: readonly string[]
  readonly sizes: ConsoleSizes
}

export async function bundleConsole(root: string, out: string): Promise<ConsoleBundle> {
  const { metafile } = await build({
    absWorkingDir: root,
    entryPoints: ['runtime/console/web/main.tsx', 'runtime/console/web/app.css'].map((path) => ({
      in: path,
      out: 'app',
    })),
    entryNames: '[name]',
    chunkNames: '[name]-[hash]',
    outdir: out,
    tsconfig: join(root, 'runtime/console/web/tsconfig.json'),
    bundle: true,
    splitting: true,
    format: 'esm',
    platform: 'browser',
    target: 'es2024',
    minify: true,
    legalComments: 'none',
    logLevel: 'warning',
    metafile: true,
  })
  const outputs = Object.entries(metafile.outputs).map(([path, output]) => ({ path, ...output }))
  const sizeOf = (path: string): number => gzipSync(readFileSync(path), { level: 9 }).length
  const scripts = outputs.filter(({ path }) => path.endsWith('.js'))
  const entry = loadedAtOnce(metafile.outputs, 'runtime/console/web/main.tsx')
  writePage(root, out, entry)
  const sum = (paths: readonly string[]): number =>
    paths.reduce((total, path) => total + sizeOf(join(root, path)), 0)
  const sizes: ConsoleSizes = {
    entry: sum(entry),
    scripts: sum(scripts.map(({ path }) => path)),
    styles: sum(outputs.filter(({ path }) => path.endsWith('.css')).map(({ path }) => path)),
    page: sizeOf(join(out, 'index.html')),
  }
  checkBudgets(sizes)
  const inputs = outputs.flatMap(({ inputs }) => Object.entries(inputs))
  return { inputs: inputs.filter(([, one]) => one.bytesInOutput > 0).map(([path]) => path), sizes }
}

/** Preloads all of the entry's scripts at once instead of one after another. */
function writePage(root: string, out: string, entry: readonly string[]): void {
  const page = readFileSync(join(root, 'runtime/console/web/index.html'), 'utf8')
  const names = entry.map((path) => basename(path)).filter((name) => name !== 'app.js')
  const links = names.map((name) => `<link rel="modulepreload" href="{{base}}${name}">\n`)
  writeFileSync(join(out, 'index.html'), page.replace('<script ', `${links.join('')}<script `))
}

interface Output {
  readonly entryPoint?: string
  readonly imports: readonly { readonly path: string; readonly kind: string }[]
}

/** Returns the entry and every chunk that it imports statically. */
function loadedAtOnce(outputs: Readonly<Record<string, Output>>, source: string): readonly string[] {
  const start = Object.keys(outputs).find((path) => outputs[path]?.entryPoint === source)
  const found = new Set<string>()
  const visit = (path: string): void => {
    if (found.has(path)) return
    found.add(path)
    for (const { path: next, kind } of outputs[path]?.imports ?? [])
      if (kind === 'import-statement') visit(next)
  }
  if (start !== undefined) visit(start)
  return [...found]
}

function checkBudgets(sizes: ConsoleSizes): void {
  for (const name of ['entry', 'scripts', 'styles', 'page'] as const)
    if (sizes[name] > budgets[name])
      throw new Error(
        `console: ${name} has ${sizes[name]} bytes after gzip, more than its budget of ${budgets[name]}`,
      )
}
