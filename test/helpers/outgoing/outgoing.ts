/** Inputs of outgoing strategies: a caller with a token, a request to send, upstream tokens from a table. */
import { type Caller, makeCaller } from '../../../runtime/net/index.ts'
import type { OutgoingRequest, UpstreamToken, UpstreamTokens } from '../../../runtime/outgoing/index.ts'

export function testCaller(from: Partial<Omit<Caller, 'key'>> = {}): Caller {
  const subject = from.subject ?? 'alice'
  return makeCaller({
    issuer: from.issuer ?? 'https://idp.example',
    subject,
    claims: { sub: subject, ...from.claims },
    token: 'token' in from ? (from.token ?? '') : `token-of-${subject}`,
  })
}

/** A caller that presented no token. */
export function tokenlessCaller(subject = 'alice'): Caller {
  return makeCaller({ issuer: 'gatehouse-local', subject, claims: { sub: subject } })
}

export function testRequest(from: Partial<OutgoingRequest> = {}): OutgoingRequest {
  return {
    method: 'POST',
    url: new URL('https://backend.example/mcp'),
    headers: { 'content-type': 'application/json' },
    body: Buffer.from('{}'),
    ...from,
  }
}

/** Returns upstream tokens by "subject provider"; `calls` records each lookup. */
export function testUpstream(
  table: Readonly<Record<string, UpstreamToken>>,
): UpstreamTokens & { readonly calls: string[] } {
  const calls: string[] = []
  return {
    calls,
    async get(caller, provider) {
      calls.push(`${caller.subject} ${provider}`)
      return table[`${caller.subject} ${provider}`]
    },
  }
}
