/**
 * Tests ToolHive's example files on a cluster: each file is converted, applied to a real API server with Metacontroller
 * and our hooks, and run on the test node. The table lists the objects that become ready, and the reasons for the rest.
 *
 * `make migration CHECKOUT=DIR`, or `node test/bench/migration.ts DIR [expression of file names]`. Needs the
 * requirements of test/helpers/kube, METACONTROLLER and the built programs; SHOW_OUTPUT=1 prints the output of pods
 * when an object is not ready. Foreign images are replaced: MCP servers by stand-in.ts, embedding services by
 * embedder.ts. There is no internet.
 */
import { spawnSync } from 'node:child_process'
import { copyFileSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import type { KubeApiserver } from '../helpers/kube/apiserver.ts'
import {
  type Image,
  imageOfPackage,
  inNamespaces,
  isInsideNamespaces,
  type LocalNode,
  startCluster,
} from '../helpers/kube/node/index.ts'
import {
  applyInstallation,
  imageFolder,
  installationImages,
  installationMissing,
  isInstalled,
  until,
} from '../helpers/kube/node/installation.ts'
import { untyped } from '../helpers/untyped.ts'
import { type ConvertedFile, convertedFiles, type Manifest } from './migration/files.ts'
import { idOf, supplementsOf } from './migration/supplements.ts'
import { type Cell, progress, table } from './vmcp/table.ts'

const [checkout, part = ''] = process.argv.slice(2)
if (checkout === undefined)
  throw new Error('usage: node test/bench/migration.ts CHECKOUT [expression of file names]')
const missing = installationMissing()
if (missing) throw new Error(missing)

/** Programs of this machine. */
const ofSystem = { env: { PATH: '/usr/bin:/bin' }, user: undefined, workdir: '/tmp' }
/** Image of an EmbeddingServer without an image. */
const defaultEmbeddings = 'ghcr.io/huggingface/text-embeddings-inference:cpu-1.9'
const longestMs = 120_000
const stillMs = 45_000

if (isInsideNamespaces()) await run(checkout)
else {
  const { command, args, env } = inNamespaces(process.argv.slice(1))
  process.exitCode = spawnSync(command, args, { env, stdio: 'inherit' }).status ?? 1
}

async function run(checkout: string): Promise<void> {
  const ends: (() => unknown)[] = []
  try {
    const files = await convertedFiles(checkout)
    const all = files.flatMap(({ manifests }) => manifests)
    const { kube, node } = await startCluster({ teardown: (end) => void ends.push(end) }, (folder) =>
      imagesFor(all, folder),
    )
    applyInstallation(kube)
    for (const name of ['gatehouse-hooks', 'gatehouse-metacontroller'])
      await until(name, () => isInstalled(kube, name), { kube, node })
    const rows: Cell[][] = []
    for (const [index, file] of files.entries()) {
      if (!new RegExp(part).test(file.file) || !file.manifests.some(isOurs)) continue
      progress(`${index + 1} of ${files.length}: ${file.file}`)
      const supplements = await supplementsOf(file.manifests, all)
      rows.push(await rowOf(kube, node, file, supplements, `example-${index}`))
      progress(rows.at(-1)?.slice(1).join(' | ') ?? '')
    }
    console.log(
      table(['File', 'Documents', 'Added', 'Admitted', 'Ready', 'Not ready or degraded, and why'], rows),
    )
  } finally {
    for (const end of ends.toReversed()) await end()
  }
}

function isOurs({ apiVersion }: Manifest): boolean {
  return apiVersion.startsWith('gatehouse.dev/')
}

/** Stand-ins for all images in the manifests. */
function imagesFor(manifests: readonly Manifest[], folder: string): ReadonlyMap<string, Image> {
  const images = new Map<string, Image>(installationImages(folder))
  const ports = new Set(['8080', ...manifests.flatMap(({ spec }) => String(untyped(spec)?.mcpPort ?? []))])
  const sources = join(import.meta.dirname, 'migration')
  for (const name of new Set([defaultEmbeddings, ...imagesIn(manifests)])) {
    if (images.has(name)) continue
    const program = name.includes('embeddings') ? 'embedder.ts' : 'stand-in.ts'
    const root = imageFolder(folder, `stand-in-${images.size}`)
    if (name.startsWith('redis:')) {
      images.set(name, { root, entrypoint: ['redis-server'], cmd: ['--protected-mode', 'no'], ...ofSystem })
      continue
    }
    const image = imageOfPackage(root, '', { entrypoint: ['node', `/stand-in/${program}`], cmd: [] })
    copyFileSync(join(sources, program), join(imageFolder(root, 'stand-in'), program))
    symlinkSync('/app', join(root, 'stand-in/node_modules'))
    const env = { ...image.env, STAND_IN_PORTS: [...ports].filter(Boolean).join(',') }
    images.set(name, { ...image, env, workdir: '/' })
  }
  return images
}

function* imagesIn(value: unknown): Generator<string> {
  if (typeof value !== 'object' || value === null) return
  for (const [name, item] of Object.entries(value))
    if (name === 'image' && typeof item === 'string') yield item
    else yield* imagesIn(item)
}

async function rowOf(
  kube: KubeApiserver,
  node: LocalNode,
  { file, outcomes, manifests }: ConvertedFile,
  supplements: readonly Manifest[],
  namespace: string,
): Promise<Cell[]> {
  kube.must(['create', 'namespace', namespace])
  const refused: string[] = []
  let admitted = 0
  for (const object of [...supplements, ...manifests].filter(({ kind }) => kind !== 'Namespace')) {
    const metadata = { ...object.metadata, namespace }
    const { code, stderr } = kube.kubectl(['apply', '-f', '-'], JSON.stringify({ ...object, metadata }))
    if (code === 0) admitted += 1
    else refused.push(`${idOf(object)}: ${stderr.split('\n')[0]}`)
  }
  const states = await settled(kube, namespace)
  const ready = states.filter(({ isReady }) => isReady)
  const told = states.filter(({ why }) => why !== '')
  if (process.env['SHOW_OUTPUT'] && told.length > 0) process.stderr.write(await node.output())
  // An object in use can be deleted only after its users.
  while (kube.get(['gatehouse', '-n', namespace]).items.length > 0)
    kube.kubectl(['delete', 'gatehouse', '--all', '-n', namespace])
  kube.must(['delete', 'namespace', namespace, '--wait=false'])
  while ((await node.pods()).some((pod) => pod.startsWith(`${namespace}/`))) await pause(500)
  return [
    `\`${file}\``,
    outcomes,
    supplements.map(idOf).join(', '),
    refused.length === 0 ? `${admitted}` : `${admitted}, refused ${refused.join('; ')}`,
    states.length === 0
      ? ''
      : ready.length === states.length
        ? `all ${ready.length}`
        : `${ready.length} of ${states.length}`,
    told.map(({ id, why }) => `${id}: ${why}`).join('; '),
  ]
}

interface State {
  readonly id: string
  readonly isReady: boolean
  /** Reason when the object is not ready, or is degraded. */
  readonly why: string
}

/** Resolves with the objects of our kinds once all are ready, or nothing has changed for a while. */
async function settled(kube: KubeApiserver, namespace: string): Promise<readonly State[]> {
  const start = performance.now()
  let last = ''
  let changed = start
  for (;;) {
    const states = statesIn(kube, namespace)
    const text = JSON.stringify(states)
    if (text !== last) changed = performance.now()
    last = text
    if (states.every(({ why }) => why === '')) return states
    if (performance.now() - changed > stillMs || performance.now() - start > longestMs) return states
    await pause(1_000)
  }
}

function statesIn(kube: KubeApiserver, namespace: string): readonly State[] {
  const { items } = untyped(kube.get(['gatehouse', '-n', namespace]))
  return items.map(({ kind, metadata, status }: ReturnType<typeof untyped>) => {
    const conditions: readonly Condition[] = status?.conditions ?? []
    const find = (wanted: string) => conditions.find(({ type }) => type === wanted)
    const decisive = find('Ready') ?? find('Valid')
    const isReady = decisive ? decisive.status === 'True' : status?.phase === 'Ready'
    const bad = conditions.find(({ type, status }) => type !== 'Ready' && status === 'False') ?? decisive
    const isWhole = isReady && status?.phase !== 'Degraded'
    const why = bad ? `${bad.reason}: ${bad.message}` : 'no status yet'
    return { id: `${kind}/${metadata.name}`, isReady, why: isWhole ? '' : why }
  })
}

type Condition = Readonly<Record<'type' | 'status' | 'reason' | 'message', string>>
