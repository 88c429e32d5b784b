/**
 * Starts a real Kubernetes API server with its etcd, on free loopback ports, for one test file.
 *
 * RBAC is on. The default user is a cluster administrator, and `--as` selects another user. The controller manager is
 * optional, and there is no scheduler or kubelet: objects are stored, validated, defaulted and admitted, and nothing
 * acts on them. node/ provides the rest of a cluster.
 */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { generateKeyPairSync, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { request } from 'node:https'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import type { Test } from 'tap'
import { controllerManagerMissing, findKubeAssets, kubeAssetsMissing } from './assets.ts'
import { serviceRange } from './service-range.ts'

export interface Ran {
  readonly code: number
  readonly stdout: string
  readonly stderr: string
}

export interface KubeApiserver {
  /** Path of the administrator's kubeconfig. */
  readonly kubeconfig: string
  readonly url: string
  /** Runs kubectl. Does not throw when the server rejects a request. `input` goes to standard input. */
  kubectl(args: readonly string[], input?: string): Ran
  /** Runs kubectl and throws when it fails. */
  must(args: readonly string[], input?: string): string
  /** Runs kubectl `get … -o json` and returns the parsed output. */
  get(args: readonly string[]): ReturnType<typeof JSON.parse>
  /** Path of the server's certificate, which is self-signed. */
  readonly authority: string
  /** The administrator's bearer token. */
  readonly token: string
  /** Starts the controller manager: Deployments create pods, and deleted owners take their dependents with them. */
  startControllerManager(): void
  /** Kills the API server and starts it again. Resolves when it responds. */
  restart(): Promise<void>
  /** Writes a kubeconfig of a service account and returns its path. The account must exist. */
  configOf(account: string, namespace: string): string
}

const startMs = 90_000

/** Reason that no server can start on this machine, for `{ skip }`; otherwise false. */
export function kubeMissing(): string | false {
  if (!findKubeAssets()) return kubeAssetsMissing
  if (spawnSync('kubectl', ['version', '--client']).status !== 0) return 'no kubectl in PATH'
  return false
}

/** Reason that no controller manager can start on this machine, for `{ skip }`; otherwise false. */
export function controllerManagerAbsent(): string | false {
  return kubeMissing() || (findKubeAssets()?.controllerManager ? false : controllerManagerMissing)
}

/** The controllers for the kinds in our manifests, without those for nodes, volumes and clouds. */
const controllers = `
  cronjob-controller deployment-controller disruption-controller endpointslice-controller garbage-collector-controller
  horizontal-pod-autoscaler-controller job-controller namespace-controller replicaset-controller root-ca-certificate-publisher-controller
  serviceaccount-controller statefulset-controller ttl-after-finished-controller
`
  .trim()
  .split(/\s+/)

/**
 * Starts both programs and stops them with the test. With `serviceAccounts`, pods get tokens as on a cluster. The
 * controller manager must then be started too, because it creates the accounts. `admissionFile` is the path of an
 * AdmissionConfiguration.
 */
export async function startKubeApiserver(
  t: Pick<Test, 'teardown'>,
  {
    serviceAccounts = false,
    admissionFile,
  }: { readonly serviceAccounts?: boolean; readonly admissionFile?: string } = {},
): Promise<KubeApiserver> {
  const assets = findKubeAssets()
  if (!assets) throw new Error(kubeAssetsMissing)
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-kube-'))
  const programs: Program[] = []
  t.teardown(async () => {
    for (const { child } of programs.toReversed()) await stop(child)
    rmSync(folder, { recursive: true, force: true })
  })

  const [client, peer, port] = await freePorts(3)
  const etcdUrl = `http://127.0.0.1:${client}`
  const peerUrl = `http://127.0.0.1:${peer}`
  programs.push(
    run(join(folder, 'etcd.log'), assets.etcd, [
      `--data-dir=${join(folder, 'etcd')}`,
      `--listen-client-urls=${etcdUrl}`,
      `--advertise-client-urls=${etcdUrl}`,
      `--listen-peer-urls=${peerUrl}`,
      `--initial-advertise-peer-urls=${peerUrl}`,
      `--initial-cluster=default=${peerUrl}`,
      '--unsafe-no-fsync',
      '--log-level=error',
    ]),
  )

  const token = randomBytes(24).toString('hex')
  writeFileSync(join(folder, 'tokens.csv'), `${token},admin,admin,"system:masters"\n`, { mode: 0o600 })
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const signer = join(folder, 'sa.key')
  writeFileSync(signer, privateKey.export({ type: 'pkcs8', format: 'pem' }), { mode: 0o600 })
  const startServer = () =>
    run(join(folder, 'apiserver.log'), assets.apiserver, [
      `--etcd-servers=${etcdUrl}`,
      '--bind-address=127.0.0.1',
      '--advertise-address=127.0.0.1',
      `--secure-port=${port}`,
      `--cert-dir=${join(folder, 'certs')}`,
      `--token-auth-file=${join(folder, 'tokens.csv')}`,
      '--authorization-mode=RBAC',
      '--service-account-issuer=https://kubernetes.default.svc',
      `--service-account-key-file=${signer}`,
      `--service-account-signing-key-file=${signer}`,
      `--service-cluster-ip-range=${serviceRange}`,
      '--endpoint-reconciler-type=none',
      // Without the controller manager, nothing creates the default service accounts.
      ...(serviceAccounts ? [] : ['--disable-admission-plugins=ServiceAccount']),
      ...(admissionFile === undefined ? [] : [`--admission-control-config-file=${admissionFile}`]),
    ])
  let apiserver = startServer()
  programs.push(apiserver)

  const url = `https://127.0.0.1:${port}`
  await ready(url, token, apiserver)
  const kubeconfig = join(folder, 'kubeconfig')
  const authority = join(folder, 'certs', 'apiserver.crt')
  writeFileSync(kubeconfig, kubeconfigText(url, authority, token), { mode: 0o600 })
  const home = join(folder, 'home')

  function kubectl(args: readonly string[], input?: string): Ran {
    const env = { ...process.env, KUBECONFIG: kubeconfig, HOME: home }
    const ran = spawnSync('kubectl', args, { input: input ?? '', encoding: 'utf8', env, maxBuffer: 2 ** 26 })
    // A program that did not start, or was ended by a signal, prints no reason.
    const why = ran.error?.message ?? ran.signal ?? ''
    return { code: ran.status ?? -1, stdout: ran.stdout, stderr: `${ran.stderr}${why}` }
  }
  function must(args: readonly string[], input?: string): string {
    const { code, stdout, stderr } = kubectl(args, input)
    if (code !== 0) throw new Error(`kubectl ${args.join(' ')} failed: ${stderr}`)
    return stdout
  }
  return {
    kubeconfig,
    url,
    authority,
    token,
    startControllerManager() {
      if (!assets.controllerManager) throw new Error(controllerManagerMissing)
      programs.push(
        run(join(folder, 'controller-manager.log'), assets.controllerManager, [
          `--kubeconfig=${kubeconfig}`,
          `--controllers=${controllers.join(',')}`,
          '--leader-elect=false',
          '--bind-address=127.0.0.1',
          '--secure-port=0',
          `--root-ca-file=${authority}`,
          `--service-account-private-key-file=${signer}`,
          '--horizontal-pod-autoscaler-sync-period=2s',
          '--kube-api-qps=200',
          '--kube-api-burst=400',
        ]),
      )
    },
    async restart() {
      await stop(apiserver.child)
      apiserver = startServer()
      programs.push(apiserver)
      await ready(url, token, apiserver)
    },
    kubectl,
    must,
    get: (args) => JSON.parse(must(['get', ...args, '-o', 'json'])),
    configOf(account, namespace) {
      const own = must(['create', 'token', account, '-n', namespace]).trim()
      const path = join(folder, `kubeconfig-${namespace}-${account}`)
      writeFileSync(path, kubeconfigText(url, authority, own), { mode: 0o600 })
      return path
    },
  }
}

interface Program {
  readonly child: ChildProcess
  /** The last part of its output. */
  output(): string
}

/** Output goes to a file. A pipe would fill up and block the program while a test waits for kubectl. */
function run(log: string, program: string, args: readonly string[]): Program {
  const out = openSync(log, 'w')
  const child = spawn(program, args, { stdio: ['ignore', out, out] })
  closeSync(out)
  let failure = ''
  child.once('error', (error) => {
    failure = error.message
  })
  return { child, output: () => failure + readFileSync(log, 'utf8').slice(-4000) }
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const gone = once(child, 'exit')
  child.kill('SIGKILL')
  await gone
}

async function freePorts(count: number): Promise<readonly number[]> {
  const servers = await Promise.all(
    Array.from({ length: count }, async () => {
      const server = createServer().listen(0, '127.0.0.1')
      await once(server, 'listening')
      return server
    }),
  )
  const ports = servers.map((server) => {
    const address = server.address()
    return typeof address === 'object' && address ? address.port : 0
  })
  await Promise.all(servers.map((server) => once(server.close(), 'close')))
  return ports
}

/** Polls, because the program does not report that it is ready. */
async function ready(url: string, token: string, server: Program): Promise<void> {
  const end = performance.now() + startMs
  while (performance.now() < end) {
    if (server.child.exitCode !== null) throw new Error(`kube-apiserver ended: ${server.output()}`)
    if (await responses(`${url}/readyz`, token)) return
    await pause(100)
  }
  throw new Error(`kube-apiserver did not become ready: ${server.output()}`)
}

function responses(url: string, token: string): Promise<boolean> {
  return new Promise((resolve) => {
    const options = { headers: { authorization: `Bearer ${token}` }, rejectUnauthorized: false }
    const call = request(url, options, (response) => {
      response.resume()
      resolve(response.statusCode === 200)
    })
    call.on('error', () => resolve(false))
    call.end()
  })
}

function kubeconfigText(server: string, authority: string, token: string): string {
  return JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': 'test',
    clusters: [{ name: 'test', cluster: { server, 'certificate-authority': authority } }],
    users: [{ name: 'admin', user: { token } }],
    contexts: [{ name: 'test', context: { cluster: 'test', user: 'admin', namespace: 'default' } }],
  })
}
