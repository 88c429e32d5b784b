/** Sends the administrator's requests to the API server of a test, without a new process for each. */
import { readFileSync } from 'node:fs'
import { Agent, request } from 'node:https'
import { setTimeout as pause } from 'node:timers/promises'
import type { KubeApiserver } from './apiserver.ts'

export interface ApiAnswer {
  readonly status: number
  readonly body: Readonly<Record<string, unknown>>
}

export interface ApiClient {
  send(method: string, path: string, body?: object): Promise<ApiAnswer>
  close(): void
}

export function apiClient({ url, authority, token }: KubeApiserver): ApiClient {
  const agent = new Agent({ keepAlive: true, ca: readFileSync(authority) })
  function once(method: string, path: string, body?: object): Promise<ApiAnswer> {
    return new Promise((resolve, reject) => {
      const type = method === 'PATCH' ? 'application/merge-patch+json' : 'application/json'
      const headers = { authorization: `Bearer ${token}`, 'content-type': type }
      const sent = request(`${url}${path}`, { method, agent, headers }, (res) => {
        let text = ''
        res.setEncoding('utf8').on('data', (part: string) => (text += part))
        res.on('error', reject)
        res.on('end', () => resolve({ status: res.statusCode ?? 0, body: JSON.parse(text || '{}') }))
      })
      sent.on('error', reject).end(body && JSON.stringify(body))
    })
  }
  return {
    async send(method, path, body) {
      for (;;) {
        const answer = await once(method, path, body)
        // The storage of a new definition is not ready at once.
        if (answer.status !== 429) return answer
        await pause(200)
      }
    },
    close: () => agent.destroy(),
  }
}
