/**
 * Requests to the token endpoint, and its responses.
 * Source: RFC 6749 sections 3.3 and 5.1; RFC 8707 section 2.2.
 */
import type { Exchange } from '../../net/index.ts'
import type { TokenBinding } from '../../oauth/index.ts'
import type { AuthenticatedClient } from '../clients/client-directory.ts'
import type { MachineClient } from '../clients/declared-clients.ts'
import type { AuthServerContext } from '../login/context.ts'
import type { AuthServerEvent } from '../model/events.ts'
import { OAuthError } from '../model/oauth-error.ts'
import { parseScope, within } from '../model/scopes.ts'
import { readResources } from './authorize.ts'
import type { Parameters } from './form.ts'

/** A request to the token endpoint, before the client is authenticated. */
export interface AnyRequest {
  readonly exchange: Exchange
  readonly form: Parameters
  /** Network address of the caller. */
  readonly source: string
}

/** A request from an authenticated client. */
export interface ClientRequest {
  readonly form: Parameters
  readonly client: AuthenticatedClient
  /** Network address of the client. */
  readonly source: string
  /** Key and certificate that the new token is bound to. */
  readonly binding: TokenBinding
  /** Thumbprint of the client's certificate. */
  readonly certificate: string | undefined
}

export interface TokenResponse {
  readonly body: object
  readonly event: AuthServerEvent
}

export function readMachineScopes(
  form: Parameters,
  { scopes }: Pick<MachineClient, 'scopes'>,
): readonly string[] {
  const requested = parseScope(form.get('scope') ?? '')
  if (!within(requested, scopes))
    throw new OAuthError('invalid_scope', 'a requested scope is not declared for this client')
  return requested.length > 0 ? requested : scopes
}

/** Returns the resource of the token. Throws OAuthError invalid_target (RFC 8707). */
export function readMachineResource(
  form: Parameters,
  client: Pick<MachineClient, 'resources'>,
  context: AuthServerContext,
): string {
  const requested = readResources(form, context)
  if (!within(requested, client.resources))
    throw new OAuthError('invalid_target', 'the requested resource is not declared for this client')
  const [audience, ...others] = requested.length > 0 ? requested : client.resources
  // If a token were valid for several servers, each of them could impersonate the client at the others (RFC 9700
  // section 2.3).
  if (audience === undefined || others.length > 0)
    throw new OAuthError('invalid_target', 'resource must name exactly one server')
  return audience
}
