/**
 * Finds the programs of a Kubernetes control plane that tests use (real etcd, kube-apiserver and
 * kube-controller-manager), the definitions of the Gateway API, Helm, an OCI registry and cosign.
 *
 * `node test/helpers/kube/assets.ts` prints their paths. `node test/helpers/kube/assets.ts build` builds them once with
 * Go from the published modules, into the user's cache folder (about 3 GB of build cache, some minutes).
 *
 * Searches KUBEBUILDER_ASSETS, the usual variable for this purpose, then the cache folder. The repository contains none
 * of them, and no test builds them.
 */
import { spawnSync } from 'node:child_process'
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { homedir } from 'node:os'
import { join, resolve } from 'node:path'

const kubernetes = '1.36.3'
const etcd = '3.6.8'
const gatewayApi = '1.6.3'

/** Programs that Go builds with the dependency versions in their own modules. */
const goPrograms = {
  helm: { version: '3.21.4', source: 'helm.sh/helm/v3/cmd/helm' },
  registry: { version: '3.1.2', source: 'github.com/distribution/distribution/v3/cmd/registry' },
  cosign: { version: '3.1.3', source: 'github.com/sigstore/cosign/v3/cmd/cosign' },
} as const

export type GoProgram = keyof typeof goPrograms
const goProgramNames = Object.keys(goPrograms) as readonly GoProgram[]

export interface KubeAssets {
  readonly etcd: string
  readonly apiserver: string
  /** Undefined when the folder does not contain it: KUBEBUILDER_ASSETS usually holds only the other two. */
  readonly controllerManager: string | undefined
}

function cacheFolder(): string {
  return join(process.env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache'), 'gatehouse', `kube-${kubernetes}`)
}

/** Paths of the programs, or undefined when this machine has none. */
export function findKubeAssets(): KubeAssets | undefined {
  const folders = [process.env['KUBEBUILDER_ASSETS'], cacheFolder()].filter((folder) => folder !== undefined)
  const programs = folders.map((folder) => ({
    etcd: join(folder, 'etcd'),
    apiserver: join(folder, 'kube-apiserver'),
    controllerManager: join(folder, 'kube-controller-manager'),
  }))
  const found = programs.find(({ etcd, apiserver }) => existsSync(etcd) && existsSync(apiserver))
  if (!found) return undefined
  const managers = programs.map(({ controllerManager }) => controllerManager)
  return { ...found, controllerManager: managers.find((path) => existsSync(path)) }
}

function gatewayFolder(): string {
  return join(cacheFolder(), `gateway-api-${gatewayApi}`)
}

/** Folder with the definitions of the Gateway API's standard channel, or undefined when this machine has none. */
export function findGatewayDefinitions(): string | undefined {
  const folder = gatewayFolder()
  return existsSync(folder) ? folder : undefined
}

function builtPath(name: GoProgram): string {
  return join(cacheFolder(), `${name}-${goPrograms[name].version}`)
}

/** Returns the path of a program that this script built, or undefined. */
function findBuilt(name: GoProgram): string | undefined {
  const path = builtPath(name)
  return existsSync(path) ? path : undefined
}

/** Returns the program in its variable (such as `HELM`), in PATH, or built by this script; otherwise undefined. */
export function findProgram(name: GoProgram): string | undefined {
  const named = process.env[name.toUpperCase()]
  if (named !== undefined) return named
  const { error } = spawnSync(name, ['--help'], { stdio: 'ignore' })
  return error ? findBuilt(name) : name
}

/** True when nothing is left to build. */
export function isEverythingBuilt(): boolean {
  const control = findKubeAssets()?.controllerManager
  return [control, findGatewayDefinitions(), ...goProgramNames.map(findBuilt)].every(
    (path) => path !== undefined,
  )
}

/** Skip reason of tests that need the missing programs. */
export const kubeAssetsMissing =
  'no kube-apiserver: set KUBEBUILDER_ASSETS, or run `node test/helpers/kube/assets.ts build` (needs Go)'

export const controllerManagerMissing =
  'no kube-controller-manager: run `node test/helpers/kube/assets.ts build` (needs Go)'

export const gatewayDefinitionsMissing =
  'no definitions of the Gateway API: run `node test/helpers/kube/assets.ts build` (needs Go)'

/** Returns the skip reason of tests that need a missing program. */
export function programAbsent(name: GoProgram): string {
  return `no ${name}: set ${name.toUpperCase()}, add it to PATH, or run \`node test/helpers/kube/assets.ts build\` (needs Go)`
}

/** The staging modules of Kubernetes are published separately, with major version 0. */
const staging = `
  api apiextensions-apiserver apimachinery apiserver cli-runtime client-go cloud-provider cluster-bootstrap
  code-generator component-base component-helpers controller-manager cri-api cri-client cri-streaming
  csi-translation-lib dynamic-resource-allocation endpointslice externaljwt kms kube-aggregator
  kube-controller-manager kube-proxy kube-scheduler kubectl kubelet metrics mount-utils pod-security-admission
  sample-apiserver sample-cli-plugin sample-controller streaming
`
  .trim()
  .split(/\s+/)

/** The definitions are files of the published module. */
function fetchGatewayDefinitions(): void {
  const args = ['mod', 'download', '-json', `sigs.k8s.io/gateway-api@v${gatewayApi}`]
  const { status, stdout, error } = spawnSync('go', args, { encoding: 'utf8', cwd: cacheFolder() })
  if (status !== 0)
    throw new Error(`the definitions of the Gateway API cannot be had: ${stdout}`, { cause: error })
  const { Dir: module }: { Dir: string } = JSON.parse(stdout)
  const from = join(module, 'config/crd/standard')
  // Go's cache is read-only, and a copy of the folder would be too.
  const partial = mkdtempSync(join(cacheFolder(), 'gateway-api-'))
  for (const name of readdirSync(from)) copyFileSync(join(from, name), join(partial, name))
  renameSync(partial, gatewayFolder())
}

function buildGoProgram(name: GoProgram): void {
  const { version, source } = goPrograms[name]
  const partial = mkdtempSync(join(cacheFolder(), `${name}-build-`))
  const args = ['install', '-trimpath', '-ldflags', '-s -w', `${source}@v${version}`]
  const env = { ...process.env, CGO_ENABLED: '0', GOBIN: partial }
  const { status, error } = spawnSync('go', args, { stdio: 'inherit', env })
  if (status === 0) renameSync(join(partial, name), builtPath(name))
  rmSync(partial, { recursive: true })
  if (status !== 0) throw new Error(`go install of ${name} failed`, { cause: error })
}

function build(folder: string): void {
  const source = join(folder, 'source')
  mkdirSync(source, { recursive: true })
  const minor = kubernetes.replace(/^1/, '0')
  const replaces = staging.map((name) => `replace k8s.io/${name} => k8s.io/${name} v${minor}`)
  const requires = [`go.etcd.io/etcd/server/v3 v${etcd}`, `k8s.io/kubernetes v${kubernetes}`]
  const lines = [
    'module gatehouse.dev/kube',
    '',
    'go 1.26.0',
    '',
    ...requires.map((one) => `require ${one}`),
    '',
  ]
  writeFileSync(join(source, 'go.mod'), [...lines, ...replaces, ''].join('\n'))
  const tools = [
    'go.etcd.io/etcd/server/v3',
    'k8s.io/kubernetes/cmd/kube-apiserver',
    'k8s.io/kubernetes/cmd/kube-controller-manager',
  ]
  const imports = tools.map((tool) => `import _ "${tool}"`)
  writeFileSync(
    join(source, 'tools.go'),
    ['//go:build tools', '', 'package kube', '', ...imports, ''].join('\n'),
  )
  const [major, second] = kubernetes.split('.')
  const stamps = [`gitVersion=v${kubernetes}`, `gitMajor=${major}`, `gitMinor=${second}`]
  const flags = ['-s -w', ...stamps.map((stamp) => `-X k8s.io/component-base/version.${stamp}`)].join(' ')
  for (const [output, tool] of [
    ['etcd', tools[0]],
    ['kube-apiserver', tools[1]],
    ['kube-controller-manager', tools[2]],
  ] as const) {
    if (existsSync(join(folder, output))) continue
    const args = ['build', '-mod=mod', '-trimpath', '-ldflags', flags, '-o', join(folder, output), tool ?? '']
    const env = { ...process.env, CGO_ENABLED: '0' }
    const { status, error } = spawnSync('go', args, { cwd: source, stdio: 'inherit', env })
    if (status !== 0) throw new Error(`go build of ${output} failed`, { cause: error })
  }
}

if (process.argv[1] && resolve(process.argv[1]) === import.meta.filename) {
  if (process.argv[2] === 'build') {
    mkdirSync(cacheFolder(), { recursive: true })
    if (!findGatewayDefinitions()) fetchGatewayDefinitions()
    if (!findKubeAssets()?.controllerManager) build(cacheFolder())
    for (const name of goProgramNames) if (!findBuilt(name)) buildGoProgram(name)
  }
  console.log(findKubeAssets() ?? kubeAssetsMissing)
  console.log(findGatewayDefinitions() ?? gatewayDefinitionsMissing)
  for (const name of goProgramNames) console.log(findBuilt(name) ?? programAbsent(name))
}
