/**
 * Chooses a remote or a package of an entry and converts it to a client's entry, which `gatehouse import` can convert to
 * a manifest. Does not download anything.
 */
import { addressViolation, headerValueViolation } from '../../../schemas/index.ts'
import { type ClientEntry, secretInUrl, type Value } from '../../toolkit/clients/index.ts'
import type { EntryArgument, RegistryPackage, RegistryRemote, ServerDocument } from './entry.ts'
import { EntryRejected } from './errors.ts'
import { Inputs, type InputValues, type KnownInput } from './inputs.ts'

export const sources = ['remote', 'npm', 'pypi', 'oci'] as const
export type SourceName = (typeof sources)[number]

export interface ChosenTarget {
  readonly source: SourceName
  readonly target: ClientEntry['target']
  /** The command with the package and its version, the image, or the URL. */
  readonly runs: string
  /** Variables that the entry declares as not secret. */
  readonly plain: readonly string[]
  readonly secrets: readonly KnownInput[]
  readonly inputs: Inputs
  /** Digest of the image. The manifest contains it. */
  readonly digest?: string
}

export interface TargetOptions {
  readonly source: SourceName | undefined
  readonly values: InputValues
  readonly allowPrivate: boolean
  /** Returns the digest of an image that the entry names by its tag. */
  readonly digestOf: (image: string) => Promise<string>
}

/** Throws EntryRejected when no remote or package can be used. */
export async function chooseTarget(server: ServerDocument, options: TargetOptions): Promise<ChosenTarget> {
  const remotes = server.remotes ?? []
  const packages = server.packages ?? []
  const remote = remotes.find(({ type }) => type === 'streamable-http') ?? remotes[0]
  if (remote && (options.source ?? 'remote') === 'remote') return remoteTarget(remote, options)
  const reasons: string[] = []
  for (const one of packages) {
    if (options.source !== undefined && options.source !== one.registryType) continue
    const reason = packageProblem(one)
    if (reason === undefined) return packageTarget(one, options)
    reasons.push(`${one.registryType} package ${one.identifier}: ${reason}`)
  }
  const offered = [...(remote ? ['remote'] : []), ...packages.map(({ registryType }) => registryType)]
  throw new EntryRejected(
    reasons.length > 0
      ? `${server.name}: no package can be used:\n${reasons.join('\n')}`
      : offered.length === 0
        ? `${server.name}: the entry has no remote and no package`
        : `${server.name}: the entry does not offer ${options.source}; use --source with one of: ${[...new Set(offered)].join(', ')}`,
  )
}

function remoteTarget(remote: RegistryRemote, { values, allowPrivate }: TargetOptions): ChosenTarget {
  const inputs = new Inputs(values)
  const url = remoteUrl(remote, inputs)
  const problem = url === undefined ? undefined : urlProblem(url, { allowPrivate })
  if (problem !== undefined) throw new EntryRejected(`remote URL ${problem}`)
  const headers = new Map<string, Value>()
  for (const header of remote.headers ?? []) {
    const [value] = inputs.values(header.name, header)
    if (value !== undefined) headers.set(header.name, value)
  }
  for (const [name, value] of headers) {
    const violation = headerValueViolation(value.filter((part) => typeof part === 'string').join(''))
    if (!/^[\w!#$%&'*+.^`|~-]+$/.test(name) || violation !== undefined)
      throw new EntryRejected(`remote header ${name}: ${violation ?? 'is not a header name'}`)
  }
  return {
    source: 'remote',
    target: { kind: 'remote', url: [url ?? ''], transport: remote.type, headers },
    runs: url ?? remote.url,
    plain: [],
    secrets: secretsOf(inputs),
    inputs,
  }
}

/** Returns the URL, or undefined when a variable has no value. */
function remoteUrl({ url, variables = {} }: RegistryRemote, inputs: Inputs): string | undefined {
  // URL parsers skip extra slashes and white space before the host. In such a URL, every variable is treated as part of
  // the host.
  const hostEnd = /^[a-z]+:\/\/[^/\\\s]+(?=\/)/i.exec(url)?.[0].length ?? url.length
  let isComplete = true
  const filled = url.replaceAll(/\{([^{}]*)\}/g, (_all, name: string, at: number) => {
    const variable = Object.hasOwn(variables, name) ? variables[name] : undefined
    const part = inputs.urlPart(name, variable ?? {}, { isHost: at < hostEnd })
    if (part === undefined) isComplete = false
    return part ?? ''
  })
  return isComplete ? filled : undefined
}

function urlProblem(url: string, { allowPrivate }: { readonly allowPrivate: boolean }): string | undefined {
  const violation = addressViolation(url, allowPrivate ? 'private' : 'public')
  if (violation !== undefined)
    return violation.replace(/; set allowPrivateEndpoint.*/, '; use --allow-private')
  const parsed = new URL(url)
  if (parsed.protocol !== 'https:' && !allowPrivate) return 'must start with https://'
  return secretInUrl(parsed)
}

/** Flags that have no effect here. Any other runtime argument could give the package more permissions. */
const harmlessFlags: ReadonlySet<string> = new Set(['-y', '--yes', '-i', '--interactive', '--rm'])

const npmName = /^(?:@[A-Za-z0-9~][\w.~-]*\/)?[A-Za-z0-9~][\w.~-]*$/
const npmVersion = /^\d+\.\d+\.\d+(?:[-+][\w.+-]+)?$/
const pypiName = /^[A-Za-z0-9](?:[\w.-]*[A-Za-z0-9])?$/
const pypiVersion = /^\d[\w.!+-]*$/
const ociName =
  /^(?:[a-z0-9][a-z0-9.-]*(?::\d+)?\/)?[a-z0-9][a-z0-9._-]*(?:\/[a-z0-9][a-z0-9._-]*)*(?::[\w][\w.-]{0,127})?(?:@sha256:[a-f0-9]{64})?$/

/** The registry that each package runner uses by default. A manifest cannot select another registry. */
const defaultRegistries: Readonly<Record<string, string>> = {
  npm: 'registry.npmjs.org',
  pypi: 'pypi.org',
}

/** Variables that change which code runs, where the package comes from, or which certificates a download trusts. */
const reservedVariable =
  /^(?:npm_|UV_|PIP_|LD_|DYLD_|GATEHOUSE_|NODE_(?:OPTIONS|PATH|EXTRA_CA_CERTS|TLS_REJECT_UNAUTHORIZED)$|PYTHON(?:PATH|HOME|STARTUP|USERBASE)$|PATH$|HOME$|USERPROFILE$|APPDATA$|XDG_|BASH_ENV$|(?:HTTPS?|ALL)_PROXY$|SSL_CERT_|DOCKER_|CONTAINERS?_)/i

/** Returns why a package cannot be used. */
function packageProblem(one: RegistryPackage): string | undefined {
  const { registryType: type, identifier, version = '', transport } = one
  if (type === 'mcpb')
    return 'gatehouse cannot run MCPB files; download the file and unpack it with "gatehouse unbundle", or use another package or the remote'
  if (type !== 'npm' && type !== 'pypi' && type !== 'oci') return `the package type ${type} is not supported`
  if (transport.type !== 'stdio')
    return `the transport ${transport.type} of a package is not supported; only stdio is`
  const names = { npm: npmName, pypi: pypiName, oci: ociName }[type]
  if (!names.test(identifier)) return 'the identifier is not a valid name'
  if (type === 'oci') {
    const problem = imageProblem(one)
    if (problem !== undefined) return problem
  }
  if (type === 'npm' && !npmVersion.test(version)) return 'requires an exact version such as 1.2.3'
  if (type === 'pypi' && !pypiVersion.test(version)) return 'requires an exact version such as 1.2.3'
  const registry = defaultRegistries[type]
  if (one.registryBaseUrl !== undefined && registry !== undefined) {
    if (URL.parse(one.registryBaseUrl)?.host !== registry)
      return `registryBaseUrl must be https://${registry}, because ${type === 'npm' ? 'npx' : 'uvx'} downloads from there`
  }
  const flag = (one.runtimeArguments ?? []).find(({ type: kind, name, value }) => {
    const word = kind === 'named' ? name : value
    return word === undefined || !harmlessFlags.has(word) || (kind === 'named' && value !== undefined)
  })
  if (flag) return 'runtimeArguments are rejected, because they can give the package more permissions'
  const variable = (one.environmentVariables ?? []).find(
    ({ name }) => !/^[A-Za-z_]\w*$/.test(name) || reservedVariable.test(name),
  )
  return variable ? `the variable ${variable.name} is not allowed` : undefined
}

/** Returns why an image cannot be used: the identifier alone selects the image, so other members must agree with it. */
function imageProblem({ identifier, version, registryBaseUrl }: RegistryPackage): string | undefined {
  const [name = '', digest] = identifier.split('@')
  const tag = /:([^/:]+)$/.exec(name)?.[1]
  if (tag === undefined && digest === undefined) return 'the identifier requires a tag or a digest'
  if (version !== undefined && version !== tag && version !== digest)
    return `the version ${version} differs from the tag in the identifier`
  if (registryBaseUrl === undefined) return undefined
  const [first = ''] = name.split('/')
  const host = name.includes('/') && (/[.:]/.test(first) || first === 'localhost') ? first : 'docker.io'
  return URL.parse(registryBaseUrl)?.host === host
    ? undefined
    : 'the host in registryBaseUrl differs from the host in the identifier'
}

async function packageTarget(
  one: RegistryPackage,
  { values, digestOf }: TargetOptions,
): Promise<ChosenTarget> {
  const inputs = new Inputs(values)
  const env = new Map<string, Value>()
  const plain: string[] = []
  for (const variable of one.environmentVariables ?? []) {
    const [value] = inputs.values(variable.name, variable)
    if (value === undefined) continue
    env.set(variable.name, value)
    if (inputs.known.get(variable.name)?.isSecret !== true && variable.isSecret !== true)
      plain.push(variable.name)
  }
  const args = (one.packageArguments ?? []).flatMap((argument, index) => words(argument, index, inputs))
  const type = one.registryType === 'npm' ? 'npm' : one.registryType === 'pypi' ? 'pypi' : 'oci'
  const image = type === 'oci' ? await pinnedImage(one.identifier, digestOf) : ''
  const spec = `${one.identifier}@${one.version}`
  const commands: Readonly<Record<typeof type, readonly string[]>> = {
    npm: ['npx', '-y', spec],
    pypi: ['uvx', spec],
    oci: ['docker', 'run', '-i', '--rm', ...[...env.keys()].flatMap((name) => ['-e', name]), image],
  }
  const [command = '', ...before] = commands[type]
  return {
    source: type,
    target: {
      kind: 'program',
      command: [command],
      args: [...before.map((word) => [word]), ...args],
      env,
      ...(type === 'oci' && { container: { image, args, volumes: [] } }),
    },
    runs: type === 'oci' ? image : `${command} ${spec}`,
    plain,
    secrets: secretsOf(inputs),
    inputs,
    ...(type === 'oci' && { digest: image.slice(image.indexOf('@') + 1) }),
  }
}

function words(argument: EntryArgument, index: number, inputs: Inputs): readonly Value[] {
  const { type, name = '', valueHint, isRepeated = false } = argument
  if (type === 'positional') return inputs.values(valueHint ?? `argument ${index + 1}`, argument, isRepeated)
  if (takesNoValue(argument) && inputs.isFlag(name, argument))
    return inputs.isSwitchedOn(name, argument) ? [[name]] : []
  const values = inputs.values(name, argument, isRepeated)
  if (argument.value === undefined && argument.format === 'boolean')
    return values.some(([text]) => text === 'true') ? [[name]] : []
  return values.flatMap((value) => [[name], value])
}

/** True when nothing in a named argument describes a value. */
function takesNoValue(argument: EntryArgument): boolean {
  const { value, format, isSecret, choices, variables, placeholder, valueHint } = argument
  const described = [value, argument.default, format, isSecret, choices, variables, placeholder, valueHint]
  return described.every((member) => member === undefined)
}

async function pinnedImage(identifier: string, digestOf: TargetOptions['digestOf']): Promise<string> {
  return identifier.includes('@') ? identifier : `${identifier}@${await digestOf(identifier)}`
}

function secretsOf({ known }: Inputs): readonly KnownInput[] {
  return [...known.values()].filter(({ isSecret }) => isSecret)
}
