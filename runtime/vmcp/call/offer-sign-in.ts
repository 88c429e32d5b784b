import { GatehouseError, isFields } from '../../../schemas/index.ts'
import { rpcCode } from '../../mcp/index.ts'
import { localIssuer } from '../../net/index.ts'
import type { SignIns } from '../backends/sign-ins.ts'
import type { Link, Operation } from '../model/operation.ts'
import { type Outcome, toolErrorOutcome } from '../model/outcome.ts'

/**
 * Asks the user to sign in when a call needs a login. A client that supports URL elicitation receives the address to
 * open. Other clients receive the address in the error. Models read errors, so errors never contain the key. An
 * elicitation contains the key only if the caller may start a login.
 */
export function offerSignIn(
  signIns: Pick<SignIns, 'waitingAt' | 'withKey'>,
  { requiresToken }: { readonly requiresToken: boolean },
): Link {
  return async function offerSignIn(operation, next) {
    // A list omits the backend's items, so it requires no sign-in.
    if (operation.method.endsWith('/list')) return next(operation)
    try {
      return await next(operation)
    } catch (error) {
      const backends = backendsOf(error).flatMap((name) => {
        const address = signIns.waitingAt(name)
        return address === undefined ? [] : [{ name, address }]
      })
      if (backends.length === 0) throw error
      if (operation.client.abilities.elicitationUrl)
        return elicitationOutcome(
          mayStartLogin(operation, { requiresToken })
            ? backends.map(({ name, address }) => ({ name, address: signIns.withKey(address) }))
            : backends,
        )
      if (operation.method !== 'tools/call' || !(error instanceof GatehouseError)) throw error
      return toolErrorOutcome(error.message)
    }
  }
}

interface OfferedLogin {
  readonly name: string
  readonly address: string
}

/** Returns the backends that caused an error because the user has not signed in to them. */
function backendsOf(error: unknown): readonly string[] {
  if (!(error instanceof GatehouseError)) return []
  if (error.code !== 'BACKEND_SIGN_IN_REQUIRED') return backendsOf(error.cause)
  const backend = isFields(error.data) ? error.data['backend'] : undefined
  return typeof backend === 'string' ? [backend] : []
}

/**
 * True for a caller that may start a login at a backend. The backends use the accounts of the listener's owner. If the
 * listener requires tokens, only the owner's programs may start a login. Otherwise, only authenticated callers may
 * start a login.
 */
function mayStartLogin(
  { client: { caller } }: Operation,
  { requiresToken }: { readonly requiresToken: boolean },
): boolean {
  return (caller.issuer === localIssuer) === requiresToken
}

/** Source: MCP 2025-11-25, client/elicitation, "URL Elicitation Required Error". */
function elicitationOutcome(logins: readonly OfferedLogin[]): Outcome {
  const elicitations = logins.map(({ name, address }) => ({
    mode: 'url',
    elicitationId: crypto.randomUUID(),
    url: address,
    message: `Sign in to ${name}`,
  }))
  const message = `This request requires a sign-in: ${logins.map(({ name }) => name).join(', ')}`
  const error = { code: rpcCode.urlElicitationRequired, message, data: { elicitations } }
  return { kind: 'error', error: Buffer.from(JSON.stringify(error)) }
}
