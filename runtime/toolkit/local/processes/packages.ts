/**
 * Fetches the packages and images of local servers before the servers start: `npx`, `uvx`, `docker` and `podman`.
 *
 * Servers with the same package share one fetch, because concurrent installations of one package corrupt npm's cache.
 * If a broken cache entry caused a failure, the report contains the command that removes the entry. Gatehouse does not
 * remove the entry, because other programs use the same cache.
 * Source: npm-exec(1); uv, "Using tools"; docker image pull.
 */
import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { type Cause, decisiveLine } from '../../../observe/index.ts'
import { exitCodeIn } from '../../../proxy/index.ts'
import { imageOf, quoteCommand } from '../../clients/index.ts'
import { secondsSince } from '../screen/lines.ts'
import { hasBrokenProgram } from './npx.ts'
import { type LocalProcess, type ProcessSpec, startProcess } from './process.ts'

/** A package that a command needs. */
interface PackageFetch {
  /** Key of the package, which is the same for all commands that share the package. */
  readonly key: string
  /** Name of the package in messages, such as `npx package @scope/name`. */
  readonly label: string
  /** Command that exits with 0 if the package is present. Undefined when `isPresent` is sufficient. */
  readonly probe?: readonly string[]
  readonly isPresent?: () => boolean
  readonly argv: readonly string[]
  /** Returns the command that removes a broken entry from the cache. Undefined if the entry is intact. */
  readonly repair: (output: string) => string | undefined
}

const maxLines = 50
const maxFetches = 3
const graceMs = 1000

export class PackageFetcher {
  readonly #report: (line: string) => void
  readonly #fetches = new Map<string, Promise<Cause | undefined>>()
  /** Keys of the packages whose last fetch failed. Retries for these packages are not reported. */
  readonly #failed = new Set<string>()
  readonly #running = new Set<LocalProcess>()
  readonly #waiting: (() => void)[] = []
  #active = 0
  #isStopped = false

  /** `report` receives a line at the start and at the end of each fetch. */
  constructor(report: (line: string) => void) {
    this.#report = report
  }

  /** Returns the label of the package that must be fetched before the command starts. */
  missing(spec: ProcessSpec): string | undefined {
    const wanted = fetchOf(spec)
    return wanted && wanted.isPresent?.() !== true ? wanted.label : undefined
  }

  /** Fetches the command's package if it is missing. Resolves with the cause of a failure. Never rejects. */
  fetch(spec: ProcessSpec): Promise<Cause | undefined> {
    const wanted = fetchOf(spec)
    if (!wanted || wanted.isPresent?.()) return Promise.resolve(undefined)
    const shared = this.#fetches.get(wanted.key)
    if (shared) return shared
    const fetching = this.#inTurn(() => this.#fetch(wanted, spec)).finally(() =>
      this.#fetches.delete(wanted.key),
    )
    this.#fetches.set(wanted.key, fetching)
    return fetching
  }

  async stop(): Promise<void> {
    this.#isStopped = true
    for (const proceed of this.#waiting.splice(0)) proceed()
    await Promise.all([...this.#running].map((process) => process.stop(graceMs)))
  }

  async #inTurn(work: () => Promise<Cause | undefined>): Promise<Cause | undefined> {
    if (this.#active >= maxFetches) await new Promise<void>((resolve) => this.#waiting.push(resolve))
    this.#active++
    try {
      return await work()
    } finally {
      this.#active--
      this.#waiting.shift()?.()
    }
  }

  async #fetch(wanted: PackageFetch, spec: ProcessSpec): Promise<Cause | undefined> {
    if (wanted.probe && (await this.#run({ ...spec, argv: wanted.probe })).code === 0) return undefined
    if (this.#isStopped) return undefined
    const isRetry = this.#failed.has(wanted.key)
    if (!isRetry) this.#report(`Installing ${wanted.label} …`)
    const since = Date.now()
    const { code, why, lines } = await this.#run({ ...spec, argv: wanted.argv })
    if (this.#isStopped) return undefined
    const output = lines.join('\n')
    const repair = wanted.repair(output)
    if (code === 0 && repair === undefined) {
      this.#failed.delete(wanted.key)
      this.#report(`Installed ${wanted.label} in ${secondsSince(since)} s.`)
      return undefined
    }
    const detail = `${wanted.label}: ${(code === 0 ? undefined : decisiveLine(lines)) ?? why}`
    const cause: Cause =
      repair === undefined
        ? { category: 'package_failed', detail, fix: networkFix(output, spec.argv[0]) }
        : { category: 'package_cache_broken', detail, fix: `run: ${repair}` }
    // The servers that need the package report the cause.
    if (!isRetry) this.#report(`Could not install ${wanted.label}.`)
    this.#failed.add(wanted.key)
    return cause
  }

  async #run(
    spec: ProcessSpec,
  ): Promise<{ code: number | undefined; why: string; lines: readonly string[] }> {
    const lines: string[] = []
    const process = startProcess(spec, (line) => lines.splice(0, Math.max(0, lines.push(line) - maxLines)))
    this.#running.add(process)
    const why = await process.exited
    this.#running.delete(process)
    return { code: exitCodeIn(why), why, lines }
  }
}

const certificateFix: Readonly<Record<string, string>> = {
  npx: 'set NODE_EXTRA_CA_CERTS to a file with the certificate authority of the registry or of your proxy',
  uvx: 'set SSL_CERT_FILE to a file with all trusted certificate authorities, including that of the registry or of your proxy',
}

/** Returns the next step when the package is not the problem. */
function networkFix(output: string, program = ''): string | undefined {
  // Proxies that inspect TLS present certificates of a private authority.
  if (/self.signed|unable.to.(?:get.(?:local.)?issuer|verify)|UnknownIssuer|unknown authority/i.test(output))
    return certificateFix[program] ?? 'trust the registry’s certificate authority in the container engine'
  if (/connect to the Docker daemon|Podman socket/i.test(output)) return 'start the container engine'
  if (
    /ENOTFOUND|EAI_AGAIN|ETIMEDOUT|ECONNREFUSED|ECONNRESET|dns error|no such host|timed? ?out/i.test(output)
  )
    return 'check the network connection, the proxy variables and the registry settings'
  return undefined
}

function fetchOf({ argv, env, cwd }: ProcessSpec): PackageFetch | undefined {
  const [program = '', ...words] = argv
  if (program === 'npx') return npxFetch(words, env, cwd)
  if (program === 'uvx') return uvxFetch(words)
  const image = program === 'docker' || program === 'podman' ? imageOf(argv) : undefined
  if (image === undefined) return undefined
  return {
    key: `${program} ${image}`,
    label: `image ${image}`,
    probe: [program, 'image', 'inspect', image],
    argv: [program, 'pull', image],
    repair: (output) =>
      /corrupt|unexpected EOF|failed to register layer/i.test(output)
        ? `${program} image rm --force ${quoteCommand([image])}`
        : undefined,
  }
}

/** npm errors that a broken cache entry causes. */
const brokenNpm =
  /ENOTEMPTY|EINTEGRITY|cb\(\) never called|Cannot find module '[^']*_npx|Invalid package config/

function npxFetch(words: readonly string[], env: ProcessSpec['env'], cwd: string): PackageFetch | undefined {
  const [spec = ''] = words[0] === '-y' || words[0] === '--yes' ? words.slice(1) : words
  const name = /^(?:@[\w.-]+\/)?[\w][\w.-]*/.exec(spec)?.[0]
  if (name === undefined || !/^(?:@[\w.^~*-]+)?$/.test(spec.slice(name.length))) return undefined
  const folder = npxFolder(spec, env)
  const isBroken = () =>
    existsSync(join(folder, 'node_modules')) && hasBrokenProgram(join(folder, 'node_modules'), name)
  return {
    key: `npx ${name}`,
    label: `npx package ${spec}`,
    isPresent: () =>
      existsSync(join(cwd, 'node_modules', name)) ||
      (existsSync(join(folder, 'node_modules', '.package-lock.json')) && !isBroken()),
    // Installs the package as npx does, and runs an empty program instead of the server.
    argv: ['npx', '--yes', `--package=${spec}`, '--', 'node', '--eval', ''],
    repair: (output) => (brokenNpm.test(output) || isBroken() ? removeCommand(folder) : undefined),
  }
}

/** Returns the folder in npm's cache where npx installs a package. Source: libnpmexec, "getPackagePath". */
function npxFolder(spec: string, env: ProcessSpec['env']): string {
  const cache = env['npm_config_cache'] ?? join(env['HOME'] ?? '', '.npm')
  return join(cache, '_npx', createHash('sha512').update(spec).digest('hex').slice(0, 16))
}

/** Returns the cause if npx exited because it could not find a file of its own installation; otherwise undefined. */
export function brokenCacheCause(output: readonly string[]): Cause | undefined {
  const text = output.join('\n')
  const [folder] = /[^\s'"]*[/\\]_npx[/\\][\da-f]{16}/.exec(text) ?? []
  if (folder === undefined || !/Cannot find (?:module|package)|ERR_MODULE_NOT_FOUND/.test(text))
    return undefined
  return {
    category: 'package_cache_broken',
    detail: decisiveLine(output),
    fix: `run: ${removeCommand(folder.replace(/^file:\/\//, ''))}`,
  }
}

function removeCommand(folder: string): string {
  return process.platform === 'win32' ? `rmdir /s /q "${folder}"` : `rm -rf ${quoteCommand([folder])}`
}

const uvxValued: ReadonlySet<string> = new Set(
  '--python -p --with --index --index-url --default-index --extra-index-url --with-editable --constraints -c'.split(
    ' ',
  ),
)

function uvxFetch(words: readonly string[]): PackageFetch | undefined {
  const options: string[] = []
  let from: string | undefined
  let at = 0
  for (; words[at]?.startsWith('-'); at++) {
    const word = words[at] ?? ''
    if (word === '--from') from = words[++at]
    else if (word.startsWith('--from=')) from = word.slice('--from='.length)
    else options.push(word, ...(uvxValued.has(word) ? [words[++at] ?? ''] : []))
  }
  const spec = from ?? (words[at] ?? '').replace('@latest', '').replace('@', '==')
  const name = /^[\w.-]+/.exec(spec)?.[0]
  if (spec === '') return undefined
  // Installs the package as uvx does, and runs an empty program instead of the server.
  const command = [...options, '--from', spec, 'python', '-c', '']
  return {
    key: `uvx ${name ?? spec}`,
    label: `uvx package ${spec}`,
    probe: ['uvx', '--offline', ...command],
    argv: ['uvx', ...command],
    repair: (output) =>
      /Failed to (?:read|deserialize|open).*cache|cache entry|corrupt/i.test(output)
        ? `uv cache clean ${name ?? ''}`.trim()
        : undefined,
  }
}
