/** A client for the benchmarks: node:http instead of fetch, because the load must cost less than the measured work. */
import { Agent, request } from 'node:http'

export interface Got {
  readonly status: number
  readonly location: string
  readonly cookies: readonly string[]
  readonly text: string
}

export interface Http {
  get(url: string, headers?: Readonly<Record<string, string>>): Promise<Got>
  post(url: string, body: string, headers?: Readonly<Record<string, string>>): Promise<Got>
  close(): void
}

export function makeHttp(): Http {
  const agent = new Agent({ keepAlive: true, maxSockets: 64 })

  function send(
    method: string,
    url: string,
    body: string | undefined,
    headers: Readonly<Record<string, string>> = {},
  ): Promise<Got> {
    return new Promise((resolve, reject) => {
      const length = body === undefined ? {} : { 'content-length': Buffer.byteLength(body) }
      const call = request(url, { agent, method, headers: { ...length, ...headers } }, (response) => {
        const parts: Buffer[] = []
        response.on('data', (part: Buffer) => parts.push(part))
        response.on('end', () => {
          const { location = '', 'set-cookie': cookies = [] } = response.headers
          const text = Buffer.concat(parts).toString()
          resolve({ status: response.statusCode ?? 0, location, cookies, text })
        })
      })
      call.on('error', reject)
      call.end(body)
    })
  }

  return {
    get: (url, headers) => send('GET', url, undefined, headers),
    post: (url, body, headers) =>
      send('POST', url, body, { 'content-type': 'application/x-www-form-urlencoded', ...headers }),
    close: () => agent.destroy(),
  }
}
