/** Implements `gatehouse token`: reads the client's credential, requests the token, and explains failures. */
import { GatehouseError, invalidConfig } from '../../../schemas/index.ts'
import {
  environment,
  type MachineGrantSource,
  parseTarget,
  readVariable,
  shownUri,
  type TargetAddress,
} from '../../config/index.ts'
import { networkFailureText, knownFailure, processProxyEnvironment } from '../../net/index.ts'
import {
  type AssertionAlg,
  endpointViolation,
  isProviderId,
  type OAuthClient,
  OAuthClientError,
  readClientKey,
  readGrantAssertion,
  serverWords,
  tokenRefusal,
} from '../../oauth/index.ts'
import { getMachineToken, type MachineToken } from '../../proxy/index.ts'
import { exitCode, print, printError, printJson } from '../../toolkit/terminal/output.ts'
import { forTerminal } from '../../toolkit/terminal/plain-text.ts'
import { readBounded, readToken } from '../../toolkit/terminal/token-file.ts'
import { type GitHubJob, GitHubTokenError, readGitHubJob } from './github.ts'
import { stoppedExitCode, stopSignal } from '../../toolkit/terminal/stop.ts'

/** Contains the client secret, if no file is set. */
export const clientSecretVariable = 'GATEHOUSE_CLIENT_SECRET'

export interface TokenFlags {
  readonly server?: string
  readonly issuer?: string
  readonly tokenUrl?: string
  readonly clientId?: string
  readonly clientSecretFile?: string
  readonly privateKeyFile?: string
  readonly signingAlg?: AssertionAlg
  readonly assertionFile?: string
  readonly github?: boolean
  readonly scope?: readonly string[]
  readonly resource?: string
  readonly provider?: string
  readonly caFile?: string
  readonly json: boolean
}

/** Returns the exit code. Throws INVALID_CONFIG, which lists all errors. */
export async function printToken(flags: TokenFlags): Promise<number> {
  const request = readRequest(flags)
  const stop = new AbortController()
  void stopSignal(stop)
  try {
    const token = await getMachineToken({
      ...request,
      proxy: processProxyEnvironment(),
      signal: stop.signal,
    })
    return printResult(token, flags)
  } catch (error) {
    if (!stop.signal.aborted) return explain(error, flags)
    printError('Error: stopped')
    return stoppedExitCode(stop.signal)
  }
}

/** Collects all errors found in the options. */
class OptionErrors {
  readonly #lines: string[] = []

  add(flag: string, rule: string): void {
    this.#lines.push(`${flag}: ${rule}`)
  }

  attempt<T>(read: () => T): T | undefined {
    try {
      return read()
    } catch (error) {
      if (!(error instanceof GatehouseError) || error.code !== 'INVALID_CONFIG') throw error
      this.#lines.push(error.message)
      return undefined
    }
  }

  throwIfAny(): void {
    if (this.#lines.length > 0) throw invalidConfig(this.#lines.join('\n'))
  }
}

function readRequest(flags: TokenFlags) {
  const errors = new OptionErrors()
  const { issuer, tokenUrl, resource, provider, caFile } = flags
  const target = readTarget(flags, errors)
  for (const [flag, url] of [
    ['--issuer', issuer],
    ['--token-url', tokenUrl],
  ] as const) {
    const problem = url === undefined ? undefined : endpointViolation(url)
    if (problem !== undefined) errors.add(flag, problem)
  }
  if (issuer !== undefined && tokenUrl !== undefined)
    errors.add('--issuer, --token-url', 'set only one of them')
  if (resource !== undefined && (!URL.canParse(resource) || resource.includes('#')))
    errors.add('--resource', 'must be an absolute URI without a fragment')
  const scopes = readScopes(flags, errors)
  const grant = readGrant(flags, errors)
  const ca = caFile === undefined ? undefined : errors.attempt(() => readBounded('--ca-file', caFile))
  errors.throwIfAny()
  if (!target || !grant) throw new GatehouseError('INTERNAL')
  return {
    target,
    typed: grant.job ? [grant.job.url] : [],
    ca,
    settings: {
      required: true,
      issuer,
      authorizeUrl: undefined,
      tokenUrl,
      // The resource has no default when no server is given.
      resource: resource ?? (flags.server === undefined ? '' : undefined),
      scopes,
      provider: provider !== undefined && isProviderId(provider) ? provider : undefined,
      machineGrant: grant.source,
      // The caller of this command does not receive the key of a bound token.
      dpop: 'off' as const,
    },
  }
}

function readTarget(
  { server, issuer, tokenUrl }: TokenFlags,
  errors: OptionErrors,
): TargetAddress | undefined {
  const url = server ?? issuer ?? tokenUrl
  if (url === undefined) {
    errors.add('--server', 'required, unless --issuer or --token-url is set')
    return undefined
  }
  const parsed = URL.canParse(url) ? new URL(url) : undefined
  if (parsed && /^https?:$/.test(parsed.protocol) && parsed.username === '' && parsed.password === '')
    return parseTarget(url, { withPath: true })
  if (server !== undefined) errors.add('--server', 'must be an http or https URL without credentials')
  return undefined
}

function readScopes({ scope }: TokenFlags, errors: OptionErrors): readonly string[] | undefined {
  const scopes = scope?.flatMap((text) => text.split(/[\s,]+/)).filter((text) => text !== '')
  if (scopes?.some((text) => !/^[\x21\x23-\x5b\x5d-\x7e]+$/.test(text)))
    errors.add('--scope', 'must contain only printable ASCII characters, without quotes or backslashes')
  return scopes
}

interface Grant {
  readonly source: MachineGrantSource
  readonly job?: GitHubJob
}

function readGrant(flags: TokenFlags, errors: OptionErrors): Grant | undefined {
  const { assertionFile, github = false } = flags
  const client = readClient(flags, errors)
  if (assertionFile !== undefined && github) errors.add('--assertion-file, --github', 'set only one of them')
  if (github) {
    const job = errors.attempt(() => readGitHubJob(environment()))
    return job && { job, source: async (request) => ({ client, assertion: await job.requestToken(request) }) }
  }
  if (assertionFile === undefined) return client && { source: () => ({ client }) }
  const assertion = errors.attempt(() =>
    readGrantAssertion(readBounded('--assertion-file', assertionFile), '--assertion-file'),
  )
  return assertion === undefined ? undefined : { source: () => ({ client, assertion }) }
}

/** True when an assertion is the grant, so that the client needs no credential. */
function hasAssertion({ assertionFile, github = false }: TokenFlags): boolean {
  return assertionFile !== undefined || github
}

/** Returns undefined when the flags specify no client. */
function readClient(flags: TokenFlags, errors: OptionErrors): OAuthClient | undefined {
  const { clientId = '', clientSecretFile, privateKeyFile, signingAlg } = flags
  const variable = readVariable(environment(), { name: clientSecretVariable, meaning: 'client secret' })
  if (clientId === '') {
    const credential = credentialSource(flags, variable)
    if (!hasAssertion(flags))
      errors.add('--client-id', 'required, unless --assertion-file or --github is set')
    else if (credential !== undefined) errors.add(credential, 'requires --client-id')
    else if (flags.clientId === '') errors.add('--client-id', 'must not be empty')
  }
  if (privateKeyFile !== undefined && (clientSecretFile ?? variable) !== undefined) {
    const source = clientSecretFile === undefined ? clientSecretVariable : '--client-secret-file'
    errors.add(`${source}, --private-key-file`, 'set only one of them')
  }
  if (signingAlg !== undefined && privateKeyFile === undefined)
    errors.add('--signing-alg', 'requires --private-key-file')
  if (privateKeyFile !== undefined) {
    const privateKey = errors.attempt(() =>
      readClientKey(readBounded('--private-key-file', privateKeyFile), '--private-key-file', signingAlg),
    )
    return privateKey && { clientId, privateKey }
  }
  const clientSecret =
    clientSecretFile === undefined
      ? variable
      : errors.attempt(() => readToken('--client-secret-file', clientSecretFile))
  if (clientSecret !== undefined) return { clientId, clientSecret }
  if (hasAssertion(flags)) return clientId === '' ? undefined : { clientId }
  if (clientSecretFile === undefined) {
    errors.add(
      '--client-secret-file',
      `required, unless --private-key-file or the variable ${clientSecretVariable} is set`,
    )
  }
  return undefined
}

function credentialSource(
  { clientSecretFile, privateKeyFile }: TokenFlags,
  variable: string | undefined,
): string | undefined {
  if (privateKeyFile !== undefined) return '--private-key-file'
  if (clientSecretFile !== undefined) return '--client-secret-file'
  return variable === undefined ? undefined : clientSecretVariable
}

function printResult({ tokens, located }: MachineToken, { json }: TokenFlags): number {
  const { accessToken, expiresAt } = tokens
  if (!/^[\x21-\x7e]+$/.test(accessToken)) {
    printError(
      'Error: the token endpoint returned a token that contains spaces, control or non-ASCII characters',
    )
    return exitCode.failed
  }
  if (json) {
    printJson({
      access_token: accessToken,
      token_type: 'Bearer',
      ...(expiresAt !== undefined && { expires_in: Math.round((expiresAt - Date.now()) / 1000) }),
      // A server that grants all requested scopes may omit them (RFC 6749 section 5.1).
      scope: tokens.scope ?? located.scopes.join(' '),
      ...(located.issuer !== undefined && { issuer: located.issuer }),
    })
  } else print(accessToken)
  return exitCode.ok
}

/** Prints what failed, the authorization server's message, and the next step. */
function explain(error: unknown, flags: TokenFlags): number {
  if (!(error instanceof GatehouseError)) throw error
  const network = knownFailure(error)
  const cause = network === undefined ? '' : `: ${networkFailureText(network)}`
  printError(`Error: could not get a token: ${forTerminal(error.message)}${cause}`)
  const words = serverWords(error)
  if (words !== undefined) printError(`Message from the authorization server: ${forTerminal(words)}`)
  printError(`Next step: ${nextStep(error, flags)}`)
  return isRejection(error) ? exitCode.authentication : exitCode.failed
}

/** False for a response that does not come from a token endpoint, such as a redirect. */
function isRejection(error: GatehouseError): boolean {
  const refusal = tokenRefusal(error)
  return refusal !== undefined && refusal !== 'temporary' && refusal !== 'unclear'
}

const boundOnly =
  'this authorization server issues only tokens that are bound to a key (DPoP); use "gatehouse proxy" with ' +
  '--remote-auth, which creates the proofs'

/** Keyed by OAuth error code. */
const steps: Readonly<Record<string, string>> = {
  invalid_client:
    'check --client-id, and check that the authorization server has this secret or public key for the client',
  invalid_dpop_proof: boundOnly,
  use_dpop_nonce: boundOnly,
  invalid_grant:
    'check that the assertion has not expired and has the right audience, and that the authorization server trusts ' +
    'its issuer and subject',
  invalid_scope: 'request only scopes that this client may have (--scope)',
  invalid_target: 'request a resource that this client may use (--resource)',
}

function nextStep(error: GatehouseError, flags: TokenFlags): string {
  const { server, tokenUrl } = flags
  if (error instanceof GitHubTokenError)
    return 'check that the job has the permission "id-token: write", and run it again'
  const code = error instanceof OAuthClientError ? error.error : undefined
  const grant = hasAssertion(flags) ? 'jwt-bearer' : 'client_credentials'
  if (code === 'unauthorized_client')
    return `allow the ${grant} grant for this client on the authorization server`
  if (code === 'unsupported_grant_type') return `enable the ${grant} grant on the authorization server`
  if (code !== undefined && Object.hasOwn(steps, code)) return steps[code] ?? ''
  if (error.code === 'BACKEND_FAILED') return 'call the server without a token, or set --issuer'
  if (tokenRefusal(error) === 'temporary') return 'try again when the authorization server is available'
  if (tokenUrl !== undefined) return 'check --token-url'
  return server === undefined
    ? 'check --issuer and its metadata document'
    : `check the server and its metadata: gatehouse doctor ${shownUri(server)}`
}
