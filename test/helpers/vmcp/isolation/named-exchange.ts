/** A token endpoint for tests: each issued token contains the subject of the exchanged token. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { json } from '../../mcp/raw-backend.ts'

export interface NamedExchange {
  readonly tokenUrl: string
  /** `outgoingAuth` of a virtual server that uses this endpoint for every backend. */
  readonly outgoingAuth: Record<string, unknown>
  close(): void
}

/** Issues `<subject>.<scopes, with dots>`. Rejects tokens for whose claims `refuses` returns true. */
export async function startNamedExchange(
  refuses: (claims: Readonly<Record<string, unknown>>) => boolean = () => false,
): Promise<NamedExchange> {
  const server = createServer((req, res) => {
    let body = ''
    req.on('data', (chunk: Buffer) => (body += chunk.toString()))
    req.on('end', () => {
      const token = new URLSearchParams(body).get('subject_token') ?? ''
      const text = Buffer.from(token.split('.')[1] ?? '', 'base64url').toString()
      const claims = JSON.parse(text) as { sub: string; scope?: string }
      if (refuses(claims)) {
        // Responds late, so that other callers join the pending exchange.
        const refusal = '{"error":"invalid_grant"}'
        setTimeout(() => res.writeHead(400, { 'content-type': 'application/json' }).end(refusal), 20)
        return
      }
      json(
        res,
        JSON.stringify({
          access_token: [claims.sub, ...(claims.scope ?? '').split(' ')].filter(Boolean).join('.'),
          token_type: 'Bearer',
          issued_token_type: 'urn:ietf:params:oauth:token-type:access_token',
          expires_in: 300,
        }),
      )
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const tokenUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}/token`
  return {
    tokenUrl,
    outgoingAuth: { source: 'inline', default: { type: 'token_exchange', tokenExchange: { tokenUrl } } },
    close() {
      server.closeAllConnections()
      server.close()
    },
  }
}
