/**
 * Runs real redis-server processes for tests: standalone, cluster, Sentinel; plain or TLS; open, password-only or ACL
 * user.
 *
 * `missingRedis` is the reason to skip when the machine has no redis-server, for tap's `skip` option, so that a skipped
 * test reports it.
 */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { freePort } from './gatehouse.ts'

export const missingRedis: string | false =
  missing('redis-server', '--version') || missing('redis-cli', '--version')

/** Like `missingRedis`, for tests that also need certificates. */
export const missingRedisTls: string | false = missingRedis || missing('openssl', 'version')

function missing(program: string, ...args: string[]): string | false {
  try {
    execFileSync(program, args, { stdio: 'ignore' })
    return false
  } catch {
    return `${program} is not installed on this machine: this was NOT tested`
  }
}

export interface Certificates {
  readonly ca: string
  readonly caFile: string
  readonly certFile: string
  readonly keyFile: string
  readonly remove: () => void
}

/** Creates a CA and one server certificate for 127.0.0.1 and localhost with openssl, as PEM files. */
export function makeCertificates(): Certificates {
  const dir = mkdtempSync(join(tmpdir(), 'gatehouse-certs-'))
  const file = (name: string): string => join(dir, name)
  const openssl = (...args: string[]): void =>
    void execFileSync('openssl', args, { stdio: 'ignore', cwd: dir })
  const request = ['req', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-sha256']
  openssl(...request, '-x509', '-days', '2', '-subj', '/CN=Test CA', '-keyout', 'ca.key', '-out', 'ca.crt')
  writeFileSync(file('san'), 'subjectAltName=IP:127.0.0.1,DNS:localhost\n')
  openssl(...request, '-subj', '/CN=127.0.0.1', '-keyout', 'server.key', '-out', 'server.csr')
  const signing = ['-CA', 'ca.crt', '-CAkey', 'ca.key', '-CAcreateserial', '-extfile', 'san', '-sha256']
  openssl('x509', '-req', '-in', 'server.csr', '-days', '2', ...signing, '-out', 'server.crt')
  return {
    ca: readFileSync(file('ca.crt'), 'utf8'),
    caFile: file('ca.crt'),
    certFile: file('server.crt'),
    keyFile: file('server.key'),
    remove: () => rmSync(dir, { recursive: true, force: true }),
  }
}

export interface RedisOptions {
  /** Without `username`, AUTH uses only the password. With it, the server has an ACL user with minimal permissions. */
  readonly auth?: { readonly username?: string; readonly password: string }
  readonly tls?: Certificates
  /** A fixed port, to restart a server at the same address. */
  readonly port?: number
  readonly args?: readonly string[]
  /** Key pattern of the ACL user. Default: all keys. */
  readonly keys?: string
  /** Commands of the ACL user. Default: the commands that the store uses. */
  readonly commands?: string
}

export interface RedisProcess {
  readonly port: number
  readonly addr: string
  readonly pid: number
  /** Stops the process with its connections open, like a failed node. */
  readonly freeze: () => void
  readonly thaw: () => void
  readonly stop: () => Promise<void>
  /** Runs redis-cli with full rights and returns its output. */
  readonly cli: (...args: string[]) => string
}

/** Permissions that the store needs, in addition to the key pattern. */
const minimalAcl = '+@read +@write +@keyspace +@scripting +@transaction +@connection'
/** Commands that find the nodes of a cluster. */
const clusterAcl = '+cluster|slots'

const adminPassword = 'test-admin'

function authArgs(options: RedisOptions): string[] {
  const { auth } = options
  if (!auth) return []
  if (auth.username === undefined) return ['--requirepass', auth.password]
  const hash = createHash('sha256').update(auth.password).digest('hex')
  const more = options.args?.includes('--cluster-enabled') ? ` ${clusterAcl}` : ''
  const commands = options.commands ?? `${minimalAcl}${more}`
  const rules = `on #${hash} ~${options.keys ?? '*'} -@all ${commands}`.split(' ')
  // The default user has a password for the test itself. Clients of the server use the ACL user.
  return ['--requirepass', adminPassword, '--user', auth.username, ...rules]
}

function tlsArgs(port: number, tls: Certificates | undefined): string[] {
  if (!tls) return ['--port', String(port)]
  const files = [
    '--tls-cert-file',
    tls.certFile,
    '--tls-key-file',
    tls.keyFile,
    '--tls-ca-cert-file',
    tls.caFile,
  ]
  return ['--port', '0', '--tls-port', String(port), '--tls-auth-clients', 'no', ...files]
}

/** Starts one server and waits until it accepts connections. */
export async function startRedis(options: RedisOptions = {}): Promise<RedisProcess> {
  const port = options.port ?? (await freePort())
  const dir = mkdtempSync(join(tmpdir(), 'gatehouse-redis-'))
  const fixed = ['--bind', '127.0.0.1', '--save', '', '--appendonly', 'no', '--dir', dir]
  const args = [...fixed, ...tlsArgs(port, options.tls), ...authArgs(options), ...(options.args ?? [])]
  const child = await launch(args, /Ready to accept connections/)
  const password = options.auth?.username === undefined ? options.auth?.password : adminPassword
  return handle(child, port, dir, cliArgs(port, options.tls, password))
}

function cliArgs(port: number, tls: Certificates | undefined, password: string | undefined): string[] {
  return [
    '-h',
    '127.0.0.1',
    '-p',
    String(port),
    ...(tls ? ['--tls', '--cacert', tls.caFile] : []),
    ...(password === undefined ? [] : ['--no-auth-warning', '-a', password]),
  ]
}

async function launch(args: readonly string[], ready: RegExp): Promise<ChildProcess> {
  const child = spawn('redis-server', args, { stdio: ['ignore', 'pipe', 'pipe'] })
  const output: string[] = []
  const lines = createInterface({ input: child.stdout })
  child.stderr.on('data', (chunk: Buffer) => output.push(chunk.toString()))
  await new Promise<void>((resolve, reject) => {
    lines.on('line', (line) => {
      if (output.length < 200) output.push(line)
      if (ready.test(line)) resolve()
    })
    child.once('exit', (code) =>
      reject(new Error(`redis-server ended with ${String(code)}:\n${output.join('\n')}`)),
    )
  })
  return child
}

function handle(child: ChildProcess, port: number, dir: string, cli: readonly string[]): RedisProcess {
  return {
    port,
    addr: `127.0.0.1:${port}`,
    pid: child.pid ?? 0,
    freeze: () => void child.kill('SIGSTOP'),
    thaw: () => void child.kill('SIGCONT'),
    stop: async () => {
      if (child.exitCode === null && child.signalCode === null) {
        const gone = once(child, 'exit')
        child.kill('SIGCONT')
        child.kill('SIGKILL')
        await gone
      }
      rmSync(dir, { recursive: true, force: true })
    },
    cli: (...args) => execFileSync('redis-cli', [...cli, ...args], { encoding: 'utf8' }).trim(),
  }
}

export interface RedisCluster {
  readonly nodes: readonly RedisProcess[]
  readonly stop: () => Promise<void>
}

const slots = 16384

/** Starts three masters without replicas that cover all slots. */
export async function startRedisCluster(options: RedisOptions = {}): Promise<RedisCluster> {
  const nodes: RedisProcess[] = []
  for (let index = 0; index < 3; index++) {
    const bus = await freePort()
    const args = ['--cluster-enabled', 'yes', '--cluster-port', String(bus)]
    if (options.tls) args.push('--tls-cluster', 'yes')
    nodes.push(await startRedis({ ...options, args: [...args, ...(options.args ?? [])] }))
    const from = Math.floor((slots * index) / 3)
    const to = Math.floor((slots * (index + 1)) / 3) - 1
    nodes[index]?.cli('cluster', 'addslotsrange', String(from), String(to))
    const first = nodes[0]
    if (first && index > 0) meet(nodes[index], first, bus)
  }
  await until(() => nodes.every((node) => node.cli('cluster', 'info').includes('cluster_state:ok')))
  await until(() => nodes.every((node) => node.cli('cluster', 'nodes').split('\n').length === 3))
  return { nodes, stop: async () => void (await Promise.all(nodes.map((node) => node.stop()))) }
}

function meet(node: RedisProcess | undefined, first: RedisProcess, _bus: number): void {
  const bus = /@(\d+)/.exec(first.cli('cluster', 'nodes'))?.[1] ?? ''
  node?.cli('cluster', 'meet', '127.0.0.1', String(first.port), bus)
}

export interface RedisSentinel {
  readonly master: RedisProcess
  readonly replica: RedisProcess
  readonly sentinels: readonly RedisProcess[]
  readonly masterName: string
  readonly stop: () => Promise<void>
}

export interface SentinelOptions extends RedisOptions {
  /** TLS of the Sentinels, independent of the nodes' TLS. */
  readonly sentinelTls?: Certificates
}

/** Starts one master, one replica, and one Sentinel with a quorum of one: the smallest setup with failover. */
export async function startRedisSentinel(options: SentinelOptions = {}): Promise<RedisSentinel> {
  const masterName = 'gatekeepers'
  const replicaAuth = options.auth?.username === undefined ? options.auth?.password : adminPassword
  const replication = [
    ...(options.tls ? ['--tls-replication', 'yes'] : []),
    ...(replicaAuth === undefined ? [] : ['--masterauth', replicaAuth]),
  ]
  const master = await startRedis({ ...options, args: replication })
  const replica = await startRedis({
    ...options,
    args: [...replication, '--replicaof', '127.0.0.1', String(master.port)],
  })
  await until(() => replica.cli('info', 'replication').includes('master_link_status:up'))
  const sentinel = await startSentinel(options, masterName, master.port, replicaAuth)
  await until(() => sentinel.cli('sentinel', 'replicas', masterName).includes(String(replica.port)))
  const all = [sentinel, master, replica]
  return {
    master,
    replica,
    sentinels: [sentinel],
    masterName,
    stop: async () => void (await Promise.all(all.map((node) => node.stop()))),
  }
}

async function startSentinel(
  options: SentinelOptions,
  masterName: string,
  masterPort: number,
  password: string | undefined,
): Promise<RedisProcess> {
  const port = await freePort()
  const dir = mkdtempSync(join(tmpdir(), 'gatehouse-sentinel-'))
  const tls = options.sentinelTls ?? options.tls
  const conf = [
    ...(options.sentinelTls ? ['port 0', `tls-port ${port}`, 'tls-auth-clients no'] : [`port ${port}`]),
    ...(tls ? [`tls-cert-file ${tls.certFile}`, `tls-key-file ${tls.keyFile}`] : []),
    ...(tls ? [`tls-ca-cert-file ${trustOf(dir, options)}`] : []),
    ...(options.tls ? ['tls-replication yes'] : []),
    'bind 127.0.0.1',
    `dir ${dir}`,
    `sentinel monitor ${masterName} 127.0.0.1 ${masterPort} 1`,
    `sentinel down-after-milliseconds ${masterName} 500`,
    `sentinel failover-timeout ${masterName} 2000`,
    ...(password === undefined ? [] : [`sentinel auth-pass ${masterName} ${password}`]),
  ]
  const file = join(dir, 'sentinel.conf')
  writeFileSync(file, `${conf.join('\n')}\n`)
  const child = await launch([file, '--sentinel'], /\+monitor master/)
  return handle(child, port, dir, cliArgs(port, options.sentinelTls, undefined))
}

/** A Sentinel connects to the nodes too, so it trusts both CAs. */
function trustOf(dir: string, options: SentinelOptions): string {
  const file = join(dir, 'trust.pem')
  writeFileSync(file, [options.tls?.ca, options.sentinelTls?.ca].filter(Boolean).join('\n'))
  return file
}

/** Polls the state of another process. The test's own timeout ends it. */
export async function until(done: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await done())) await new Promise((resolve) => setTimeout(resolve, 20))
}
