/**
 * A local MCP registry with the read API v0.1: one version, or `latest`. Checks its own responses against the published
 * format, unless a test publishes an invalid entry on purpose.
 */
import { readFileSync } from 'node:fs'
import type { Test } from 'tap'
import { type Loopback, startLoopback } from '../loopback.ts'
import { validateServerResponse } from './server-json.ts'

export interface PublishedServer {
  readonly name: string
  readonly version: string
  readonly [member: string]: unknown
}

export type Status = 'active' | 'deprecated' | 'deleted'

export interface TestRegistry extends Loopback {
  /** Publishes a version, which becomes the latest, or replaces it. */
  publish(server: PublishedServer, status?: Status): void
  /** Publishes a response without checking it. */
  publishRaw(name: string, version: string, response: unknown): void
  /** Returns all entries, as the registry lists them. */
  list(): object
}

const path = /^\/v0\.1\/servers\/([^/]+)\/versions\/([^/]+)$/

export async function startRegistry(t: Pick<Test, 'teardown'>): Promise<TestRegistry> {
  const entries = new Map<string, Map<string, unknown>>()
  const latest = new Map<string, string>()
  const loopback = await startLoopback((request) => {
    const [, name = '', version = ''] = path.exec(request.path)?.map(decodeURIComponent) ?? []
    const found = entries.get(name)?.get(version === 'latest' ? (latest.get(name) ?? '') : version)
    if (request.method !== 'GET' || found === undefined)
      return { status: 404, body: { error: 'Server not found' } }
    return { body: found }
  })
  t.teardown(() => loopback.close())

  function put(name: string, version: string, response: unknown): void {
    const versions = entries.get(name) ?? new Map<string, unknown>()
    entries.set(name, versions.set(version, response))
    latest.set(name, version)
  }
  return {
    ...loopback,
    seen: loopback.seen,
    publish(server, status = 'active') {
      const response = responseOf(server, status)
      if (!validateServerResponse(response))
        throw new Error(`invalid entry: ${JSON.stringify(validateServerResponse.errors)}`)
      put(server.name, server.version, response)
    },
    publishRaw: put,
    list: () => {
      const servers = [...entries.values()].flatMap((versions) => [...versions.values()])
      return { servers, metadata: { count: servers.length } }
    },
  }
}

function responseOf(server: PublishedServer, status: Status = 'active'): object {
  const time = '2026-01-01T00:00:00Z'
  const official = { status, publishedAt: time, updatedAt: time, isLatest: true }
  return { server, _meta: { 'io.modelcontextprotocol.registry/official': official } }
}

/** Version of the package in `npmServer`, which is installed, so that nothing is downloaded. */
export const memoryVersion: string = (
  JSON.parse(readFileSync('node_modules/@modelcontextprotocol/server-memory/package.json', 'utf8')) as {
    version: string
  }
).version

/** Returns an entry with an npm package. */
export function npmServer(
  name: string,
  version: string,
  more: Readonly<Record<string, unknown>> = {},
): PublishedServer {
  const memory = { registryType: 'npm', identifier: '@modelcontextprotocol/server-memory' }
  return {
    name,
    description: 'A server for tests',
    version,
    packages: [{ ...memory, version: memoryVersion, transport: { type: 'stdio' }, ...more }],
  }
}

/** Returns an entry with a remote. */
export function remoteServer(
  name: string,
  url: string,
  more: Readonly<Record<string, unknown>> = {},
): PublishedServer {
  return {
    name,
    description: 'A remote server for tests',
    version: '1.0.0',
    remotes: [{ type: 'streamable-http', url, ...more }],
  }
}
