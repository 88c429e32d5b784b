/**
 * An HTTP proxy from the environment, and connections through it: TCP or TLS to the proxy, then a tunnel (CONNECT) for
 * https targets. Requests to http targets are sent to the proxy in absolute form (dispatcher.ts).
 *
 * Every failure is an HttpProxyError whose message contains the proxy, the variable and the next step, but never
 * credentials.
 * Source: RFC 9110 section 9.3.6, RFC 9112 section 3.2.2.
 */
import { request } from 'node:http'
import type { Socket } from 'node:net'
import { ModuleError } from '../../../schemas/index.ts'
import { failureOf, networkFailureText } from './failure.ts'
import { type ProxyEnvironment, proxyFor } from './proxy-environment.ts'

export interface ProxyServer {
  readonly url: URL
  /** Host and port, for messages. */
  readonly name: string
  /** The variable that contains the proxy URL. */
  readonly variable: 'HTTP_PROXY' | 'HTTPS_PROXY'
  /** Value of Proxy-Authorization; undefined if there are no credentials. */
  readonly authorization: string | undefined
}

/** Thrown when the HTTP proxy prevents a request. The message can be shown to an operator. */
class HttpProxyError extends ModuleError {
  readonly code = 'HTTP_PROXY_FAILED'
}

/** Parses a proxy URL. `protocol` is the target's protocol. Throws HttpProxyError. */
export function parseProxy(text: string, protocol: string): ProxyServer {
  const variable = protocol === 'https:' ? 'HTTPS_PROXY' : 'HTTP_PROXY'
  const url = URL.parse(text)
  if (!url || !/^https?:$/.test(url.protocol) || url.hostname === '')
    throw new HttpProxyError(
      `invalid ${variable}: expected an http or https URL such as http://proxy.example.com:3128`,
    )
  const { username, password, hostname, port } = url
  const name = `${hostname}:${port || (url.protocol === 'https:' ? '443' : '80')}`
  const credentials = `${decoded(username)}:${decoded(password)}`
  const authorization =
    credentials === ':' ? undefined : `Basic ${Buffer.from(credentials).toString('base64')}`
  return { url, name, variable, authorization }
}

/** Returns the host and port of a URL's proxy, for messages; undefined for a direct connection. */
export function proxyName(url: string, environment: ProxyEnvironment): string | undefined {
  const text = proxyFor(url, environment)
  return text === undefined ? undefined : (URL.parse(text)?.host ?? 'an invalid URL')
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

/** Returns the error for a failed connection to the proxy itself. */
export function proxyUnreachable({ name, variable }: ProxyServer, cause: Error): HttpProxyError {
  const reason = networkFailureText(failureOf(cause))
  return new HttpProxyError(`could not connect to the HTTP proxy ${name}: ${reason}; check ${variable}`, {
    cause,
  })
}

/** Returns the error for an error response from the proxy. `target` is the target's host and port. */
export function proxyRefused({ name, variable, authorization }: ProxyServer, target: string, status: number) {
  if (status === 407) {
    return new HttpProxyError(
      authorization === undefined
        ? `the HTTP proxy ${name} requires credentials (407); add a user and password to ${variable}`
        : `the HTTP proxy ${name} rejected the credentials in ${variable} (407); correct them`,
    )
  }
  const next =
    status >= 500
      ? `check the host name, or add it to NO_PROXY if it is reachable directly`
      : `allow the host in the proxy, or add it to NO_PROXY if it is reachable directly`
  const failed = status >= 500 ? 'could not connect' : 'refused to connect'
  return new HttpProxyError(`the HTTP proxy ${name} ${failed} to ${target} (${status}); ${next}`)
}

/** Requests a tunnel to `target` over a connection to the proxy. Rejects with HttpProxyError. */
export function openTunnel(
  proxy: ProxyServer,
  socket: Socket,
  target: string,
  timeoutMs: number,
): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const headers = {
      Host: target,
      Connection: 'keep-alive',
      ...(proxy.authorization === undefined ? {} : { 'Proxy-Authorization': proxy.authorization }),
    }
    const connectRequest = request({
      method: 'CONNECT',
      path: target,
      headers,
      createConnection: () => socket,
    })
    const timer = setTimeout(
      () => connectRequest.destroy(Object.assign(new Error('no response to CONNECT'), { code: 'ETIMEDOUT' })),
      timeoutMs,
    )
    connectRequest.once('connect', (response, tunnel: Socket, head) => {
      clearTimeout(timer)
      const status = response.statusCode ?? 0
      if (status < 200 || status > 299) {
        tunnel.destroy()
        reject(proxyRefused(proxy, target, status))
        return
      }
      if (head.length > 0) tunnel.unshift(head)
      resolve(tunnel)
    })
    connectRequest.once('error', (cause) => {
      clearTimeout(timer)
      const reason = networkFailureText(failureOf(cause))
      reject(
        new HttpProxyError(
          `the HTTP proxy ${proxy.name} did not open a tunnel to ${target}: ${reason}; check ${proxy.variable}`,
          { cause },
        ),
      )
    })
    connectRequest.end()
  })
}
