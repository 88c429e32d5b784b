/** An authorization server that accepts metadata documents from a loopback host, and that host. */
import type { Test } from 'tap'
import type { AuthServerConfig } from '../../../runtime/config/index.ts'
import { makeFetch } from '../../../runtime/net/index.ts'
import { makeMemoryStore } from '../../../runtime/store/index.ts'
import { type Loopback, type PeerResponse, startLoopback } from '../loopback.ts'
import { authorizeUrl, pkce, redirectUri, type Rig, startAuthServer } from './authserver.ts'

export interface DocumentHost {
  readonly rig: Rig
  readonly host: Loopback
  readonly clientId: string
  response: (path: string) => PeerResponse
}

export async function startDocumentHost(
  t: Test,
  config: Partial<AuthServerConfig> = {},
  cimd = {},
): Promise<DocumentHost> {
  const host = await startLoopback(({ path }) => self.response(path))
  const fetch = makeFetch({ maxRedirects: 0, maxBytes: 10_240, timeoutMs: 5_000 })
  t.teardown(async () => {
    await fetch.close()
    await host.close()
  })
  const rig = await startAuthServer(t, {
    // Limits use the store's clock; caches use the server's clock. Tests move only the server's clock.
    store: makeMemoryStore({ now: () => 0 }),
    documentFetch: fetch,
    config: {
      ...config,
      cimd: { cacheMaxSize: 256, cacheTtlMs: 300_000, allowLoopback: true, ...cimd },
    },
  })
  const clientId = `${host.url}/client.json`
  const self: DocumentHost = {
    rig,
    host,
    clientId,
    response: (path) => ({ body: clientDocument(`${host.url}${path}`) }),
  }
  return self
}

export function clientDocument(clientId: string, more: object = {}): object {
  return { client_id: clientId, client_name: 'Described Client', redirect_uris: [redirectUri], ...more }
}

/** Sends an authorization request as a client that accepts JSON. */
export function startLogin(
  rig: Rig,
  clientId: string,
  parameters: Readonly<Record<string, string>> = {},
): Promise<Response> {
  const url = authorizeUrl(rig, { client_id: clientId, code_challenge: pkce().challenge, ...parameters })
  return fetch(url, { redirect: 'manual', headers: { accept: 'application/json' } })
}
