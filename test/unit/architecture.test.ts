/**
 * The import table: the modules that each module may import. Imports that are not listed are forbidden. Modules are
 * imported through their public API (index.ts) only.
 */
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import t from 'tap'

const root = resolve(import.meta.dirname, '../..')
const foundation = [
  'net',
  'expr',
  'store',
  'kube',
  'observe',
  'process',
  'mcp',
  'oauth',
  'config',
  'policy',
  'outgoing',
  'incoming',
]

/** A module of runtime/ may import the modules below it. */
const runtimeModules: Record<string, readonly string[]> = {
  expr: [],
  net: below('net', ['expr', ...foundation]),
  store: ['expr', 'net'],
  kube: ['expr', 'net'],
  observe: ['expr', 'net', 'store'],
  process: ['net', 'observe'],
  mcp: ['expr', 'net', 'store', 'observe'],
  oauth: ['expr', 'net', 'store', 'observe', 'mcp'],
  config: ['expr', 'net', 'store', 'observe', 'mcp', 'oauth'],
  policy: ['expr', 'net', 'store', 'observe', 'mcp', 'oauth', 'config'],
  outgoing: ['expr', 'net', 'store', 'observe', 'mcp', 'oauth', 'config', 'policy'],
  incoming: ['expr', 'net', 'store', 'observe', 'mcp', 'oauth', 'config', 'policy', 'outgoing'],
  proxy: foundation,
  vmcp: foundation,
  authserver: foundation,
  console: foundation,
  catalogue: foundation,
  toolkit: [...foundation, 'proxy'],
  /** Tools may not import one another. */
  tools: [...foundation, 'proxy', 'vmcp', 'authserver', 'console', 'toolkit'],
  cli: [...foundation, 'proxy', 'vmcp', 'authserver', 'console', 'catalogue', 'toolkit', 'tools'],
}

function below(module: string, order: readonly string[]): readonly string[] {
  return order.slice(0, order.indexOf(module))
}

/**
 * Returns the module of a path relative to the root: 'schemas', 'hooks', 'runtime/<module>', 'runtime/tools/<tool>' …
 */
function moduleOf(path: string): string {
  const [top = '', second = '', third = ''] = path.split('/')
  if (top !== 'runtime') return top
  return second === 'tools' ? `runtime/tools/${third}` : `runtime/${second}`
}

function allowed(from: string, to: string): boolean {
  if (from === to || from === 'test') return true
  if (to === 'schemas') return true
  if (from === 'manifests') return to === 'hooks'
  const [top, floor = ''] = from.split('/')
  if (to === 'hooks') return ['cli', 'tools', 'toolkit'].includes(floor)
  const [target, below = ''] = to.split('/')
  if (top !== 'runtime' || target !== 'runtime') return false
  return runtimeModules[floor]?.includes(below) ?? false
}

/** Third-party packages that only one module may import. */
const gates: Record<string, readonly string[]> = {
  undici: ['runtime/net'],
  '@redis/client': ['runtime/store'],
  '@kubernetes/client-node': ['hooks'],
  ws: ['runtime/kube'],
  '@cedar-policy/cedar-wasm': ['schemas'],
  express: ['hooks'],
  pino: ['runtime/observe'],
  '@opentelemetry/api': ['runtime/observe'],
  '@opentelemetry/sdk-trace': ['runtime/observe'],
  '@opentelemetry/sdk-metrics': ['runtime/observe'],
  preact: ['runtime/console'],
  '@preact/signals': ['runtime/console'],
  'oidc-provider': ['runtime/tools/up'],
  '@simplewebauthn/server': ['runtime/tools/up'],
  commander: ['runtime/cli', 'runtime/tools', 'runtime/toolkit', 'hooks'],
  'jsonc-parser': ['runtime/toolkit'],
  'smol-toml': ['runtime/toolkit'],
  diff: ['runtime/toolkit'],
  yazl: ['runtime/tools/bundle'],
  yauzl: ['runtime/tools/bundle'],
}

/**
 * The console's pages run in browsers. They share these files with the server, listed one by one because a public API
 * is too large.
 */
const pages = 'runtime/console/web/'
const sharedWithPages: ReadonlySet<string> = new Set([
  'runtime/console/api.ts',
  'runtime/console/api-overview.ts',
  'runtime/console/api-calls.ts',
  'runtime/console/api-pins.ts',
  'runtime/console/calls/filter.ts',
  'schemas/hidden-characters.ts',
])

function sources(dir: string): string[] {
  return readdirSync(join(root, dir)).flatMap((name) => {
    const path = join(dir, name)
    if (name === 'node_modules' || name === 'generated' || name === 'fixtures') return []
    if (statSync(join(root, path)).isDirectory()) return sources(path)
    return /\.tsx?$/.test(path) ? [path] : []
  })
}

function importsOf(path: string): string[] {
  const text = readFileSync(join(root, path), 'utf8')
  const found = text.matchAll(/(?:\bfrom|\bimport)\s*\(?\s*['"]([^'"]+)['"]/g)
  return [...found].map((match) => match[1] ?? '')
}

const files = ['schemas', 'hooks', 'runtime', 'manifests'].flatMap(sources)

t.test('modules: every import follows the table and uses the public API', async (t) => {
  t.ok(files.length > 5, 'source files were found')
  for (const file of files) {
    for (const specifier of importsOf(file)) {
      if (!specifier.startsWith('.')) continue
      const target = relative(root, resolve(root, dirname(file), specifier))
      if (target === 'package.json') continue
      if (file.startsWith(pages) && sharedWithPages.has(target)) continue
      const from = moduleOf(file)
      const to = moduleOf(target)
      if (!allowed(from, to)) t.fail(`${file} may not import ${target}`)
      else if (from !== to && !isPublic(target))
        t.fail(`${file} must enter ${to} by its public API, not ${target}`)
    }
  }
})

/** The folders inside a module, top to bottom. A folder imports only itself and the folders below it. */
const layers: Readonly<Record<string, readonly string[]>> = {
  'runtime/vmcp': ['server', 'clients', 'call', 'features', 'catalog', 'backends', 'model'],
  'runtime/vmcp/features': [],
  'runtime/toolkit': [
    'local',
    'targets',
    'client-files',
    'manifests',
    'cluster',
    'mcp-client',
    'clients',
    'terminal',
  ],
  hooks: [
    'server',
    'certificates',
    'check',
    'admission',
    'registry',
    'kinds',
    'externalauth',
    'runtime-config',
    'references',
    'children',
    'sync',
    'base',
  ],
  'runtime/authserver': ['server', 'endpoints', 'login', 'clients', 'upstream', 'tokens', 'storage', 'model'],
  'runtime/proxy': [
    'workers',
    'tunnel',
    'stdio-client',
    'run',
    'server',
    'forward',
    'session',
    'login',
    'stdio-server',
    'model',
  ],
}

t.test('folders: inside a module, folders import only lower folders', async (t) => {
  for (const [module, folders] of Object.entries(layers)) {
    const folderOf = (path: string) => path.slice(module.length + 1).split('/')[0] ?? ''
    const inside = files.filter((file) => file.startsWith(`${module}/`) && file !== `${module}/index.ts`)
    t.ok(inside.length > 20, `${module}: source files were found`)
    for (const file of inside) {
      const from = folderOf(file)
      if (folders.length > 0 && !folders.includes(from)) t.fail(`${file}: ${module}/${from} has no layer`)
      for (const specifier of importsOf(file)) {
        const target = relative(root, resolve(root, dirname(file), specifier))
        if (!specifier.startsWith('.') || !target.startsWith(`${module}/`)) continue
        const to = folderOf(target)
        const isDown = folders.indexOf(from) < folders.indexOf(to)
        if (from !== to && !isDown) t.fail(`${file} may not import ${target}`)
      }
    }
  }
})

t.test(
  'modules: pages of the console import only its API and the rules for filters and hidden characters',
  async (t) => {
    const found = files.filter((file) => file.startsWith(pages))
    t.ok(found.length > 20, 'pages were found')
    for (const file of found)
      for (const specifier of importsOf(file)) {
        if (!specifier.startsWith('.')) continue
        const target = relative(root, resolve(root, dirname(file), specifier))
        if (!target.startsWith(pages) && !sharedWithPages.has(target))
          t.fail(`${file} may not import ${target}`)
      }
  },
)

/**
 * Returns true for files that other modules may import: `index.ts`, JSON data, the `command.ts` of a tool, and files of
 * the toolkit outside of `clients`. Direct imports from the toolkit let a command load only what it needs.
 */
function isPublic(target: string): boolean {
  if (/^runtime\/tools\/[^/]+\/command\.ts$/.test(target)) return true
  if (target.startsWith('runtime/toolkit/') && !target.startsWith('runtime/toolkit/clients/')) return true
  return target.endsWith('/index.ts') || target.endsWith('.json')
}

t.test('imports: no cycle, types included', async (t) => {
  const graph = new Map(
    [...files, ...sources('test/helpers')].map((file) => [
      file,
      importsOf(file)
        .filter((specifier) => specifier.startsWith('.'))
        .map((specifier) => relative(root, resolve(root, dirname(file), specifier))),
    ]),
  )
  for (const circle of circlesOf(graph)) t.fail(circle.join(' -> '))
})

t.test('imports: a cycle is found from any starting point', async (t) => {
  const graph = new Map([
    ['a', ['b']],
    ['b', ['c', 'd']],
    ['c', ['b']],
    ['d', []],
  ])
  t.same(circlesOf(graph), [['b', 'c', 'b']])
  t.same(circlesOf(new Map([...graph].toReversed())).length, 1)
})

/** Returns each cycle as a path. A file that is not a key ends a path. */
function circlesOf(graph: ReadonlyMap<string, readonly string[]>): string[][] {
  const found: string[][] = []
  const done = new Set<string>()
  const visit = (file: string, way: readonly string[]): void => {
    const from = way.indexOf(file)
    if (from >= 0 && from < way.length - 1) found.push([...way.slice(from), file])
    if (from >= 0 || done.has(file)) return
    for (const next of graph.get(file) ?? []) visit(next, [...way, file])
    done.add(file)
  }
  for (const file of graph.keys()) visit(file, [])
  return found
}

t.test('modules: each third-party package is imported by one module only', async (t) => {
  for (const file of files) {
    for (const specifier of importsOf(file)) {
      const name = specifier.startsWith('@')
        ? specifier.split('/').slice(0, 2).join('/')
        : specifier.split('/')[0]
      const owners = gates[name ?? '']
      if (owners && !owners.some((owner) => file.startsWith(`${owner}/`)))
        t.fail(`${file} may not import ${specifier}`)
    }
  }
})

t.test('yaml: one file parses it, and one writes it', async (t) => {
  for (const file of files) {
    const text = readFileSync(join(root, file), 'utf8')
    const names = /import \{([^}]*)\} from 'yaml'/.exec(text)?.[1] ?? ''
    // The generator reads the project's own chart; all other YAML is input from users.
    const mayParse = ['schemas/yaml/read.ts', 'manifests/generate/defaults.ts']
    if (/\bparse/.test(names) && !mayParse.includes(file)) t.fail(`${file} must read YAML with readYaml`)
    if (/\bstringify/.test(names) && file !== 'schemas/yaml/index.ts')
      t.fail(`${file} must write YAML with writeYaml`)
  }
})

t.test('environment: only the listed files read process.env', async (t) => {
  for (const file of files) {
    const reads = /\bprocess\.env\b/.test(readFileSync(join(root, file), 'utf8'))
    const may =
      file.startsWith('runtime/config/') ||
      // Default for every connection, so that no caller can omit it.
      file === 'runtime/net/outgoing/proxy-environment.ts' ||
      file === 'hooks/server/main.ts' ||
      file.startsWith('runtime/toolkit/local/')
    if (reads && !may) t.fail(`${file} reads process.env`)
  }
})

/** Folders of tests that may contain up to 35 files: one file for each behaviour, or for each attack on one module. */
const largeFolders = new Set([
  'test/behaviour/authserver',
  'test/behaviour/proxy',
  'test/behaviour/vmcp',
  'test/e2e',
  'test/security',
  'test/unit/cli',
  'test/unit/hooks',
  'test/unit/schemas',
  'test/unit/vmcp',
])

t.test('folders: at most 15 files at one level, and no folder is called shared', async (t) => {
  const counts = new Map<string, number>()
  for (const file of [...files, ...sources('test')])
    counts.set(dirname(file), (counts.get(dirname(file)) ?? 0) + 1)
  for (const [folder, count] of counts) {
    if (folder.split('/').includes('shared'))
      t.fail(`${folder}: what modules have in common is called common/`)
    const most = largeFolders.has(folder) ? 35 : 15
    if (count > most) t.fail(`${folder} has ${count} files, not ${most}: split it`)
  }
})

/** Tables may be long. */
const tables = new Set(['runtime/config/proxy/flags.ts', 'runtime/console/web/texts.ts'])

t.test('files: none is longer than 400 lines, except tables', async (t) => {
  for (const file of files) {
    const lines = readFileSync(join(root, file), 'utf8').split('\n').length
    if (lines > 401 && !tables.has(file)) t.fail(`${file} has ${lines} lines`)
  }
})
