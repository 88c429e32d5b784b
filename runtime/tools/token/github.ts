/**
 * Requests the OIDC token of a GitHub Actions job.
 * Source: https://docs.github.com/en/actions/reference/security/oidc
 */
import { GatehouseError, invalidConfig } from '../../../schemas/index.ts'
import { type Environment, type MachineGrantRequest, readVariable } from '../../config/index.ts'
import {
  endpointViolation,
  readGrantAssertion,
  readJson,
  requiredString,
  send,
  withoutSecrets,
} from '../../oauth/index.ts'

const urlVariable = {
  name: 'ACTIONS_ID_TOKEN_REQUEST_URL',
  meaning: 'URL that returns the OIDC token of a GitHub Actions job',
}
const tokenVariable = {
  name: 'ACTIONS_ID_TOKEN_REQUEST_TOKEN',
  meaning: 'bearer token for that URL',
}
const what = 'the OIDC endpoint of GitHub Actions'

export interface GitHubJob {
  readonly url: string
  /** Returns a token for `audience`. Rejects with GitHubTokenError, or with the signal's reason. */
  requestToken(request: MachineGrantRequest): Promise<string>
}

/** The job received no OIDC token. */
export class GitHubTokenError extends GatehouseError {
  constructor(cause: GatehouseError) {
    super('OAUTH_UNAVAILABLE', { detail: cause.message, cause })
    this.name = 'GitHubTokenError'
  }
}

/** Throws INVALID_CONFIG outside a job that may request tokens. */
export function readGitHubJob(env: Environment): GitHubJob {
  const url = readVariable(env, urlVariable)
  const token = readVariable(env, tokenVariable)
  if (url === undefined || token === undefined) {
    throw invalidConfig(
      `--github: requires the variables ${urlVariable.name} and ${tokenVariable.name}. ` +
        'GitHub sets them for a job with the permission "id-token: write"',
    )
  }
  const problem = endpointViolation(url)
  if (problem !== undefined) throw invalidConfig(`${urlVariable.name}: ${problem}`)
  if (!/^[\x21-\x7e]+$/.test(token))
    throw invalidConfig(`${tokenVariable.name}: must consist of printable characters without spaces`)
  return {
    url,
    async requestToken({ audience, fetch, signal }) {
      const request = new URL(url)
      if (audience !== undefined) request.searchParams.set('audience', audience)
      const headers = { accept: 'application/json', authorization: `Bearer ${token}` }
      try {
        const response = await send(what, request.href, { headers }, { fetch, signal })
        const value = requiredString(what, await readJson(what, response), 'value')
        return readGrantAssertion(value, what)
      } catch (error) {
        const failure = withoutSecrets(error, [token])
        throw failure instanceof GatehouseError ? new GitHubTokenError(failure) : failure
      }
    },
  }
}
