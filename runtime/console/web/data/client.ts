/**
 * Sends requests to the console's API. Paths are relative to the script, so they work under any base path.
 *
 * Every failure is reported as an `ApiError`. Failures that affect the whole console (signed out, connection lost) also
 * update `session`, which the shell shows.
 */
import { signal } from '@preact/signals'
import type { Me } from '../../api.ts'
import { askOtherTabs, launchToken } from './launch.ts'

export class ApiError extends Error {
  /** HTTP status; 0 if there was no response. */
  readonly status: number
  readonly code: string

  constructor(status: number, code: string, message: string) {
    super(message)
    this.status = status
    this.code = code
  }
}

export interface SignInState {
  readonly state: 'loading' | 'ready' | 'signed-out' | 'expired' | 'refused'
  readonly me?: Me
  readonly error?: ApiError
}

export const session = signal<SignInState>({ state: 'loading' })

/** Time when the connection was lost; undefined while the server responds. */
export const lostSince = signal<number | undefined>(undefined)

/** Base path: the folder of the scripts. */
const base = new URL('./', import.meta.url)
const api = new URL('api/v1/', base).href

/** Sends one request; the caller reads the body. Rejects with an `ApiError`, or with the abort reason of `signal`. */
export async function request(path: string, init: RequestInit = {}): Promise<Response> {
  let response: Response
  try {
    response = await fetch(api + path, { ...init, headers: headersOf(init), cache: 'no-store' })
  } catch (error) {
    if (init.signal?.aborted) throw error
    lostSince.value ??= Date.now()
    throw new ApiError(0, 'connection', 'The server does not respond.')
  }
  lostSince.value = undefined
  if (response.ok) return response
  const error = await errorOf(response)
  if (error.status === 401) endSession(error)
  throw error
}

function headersOf(init: RequestInit): Record<string, string> {
  const headers: Record<string, string> = { accept: 'application/json' }
  const csrf = session.peek().me?.csrf
  const launch = launchToken()
  if (launch !== undefined) headers['x-gatehouse-launch'] = launch
  if (init.method !== undefined && csrf !== undefined) headers['x-gatehouse-csrf'] = csrf
  if (init.body !== undefined) headers['content-type'] = 'application/json'
  return { ...headers, ...(init.headers as Record<string, string> | undefined) }
}

async function errorOf(response: Response): Promise<ApiError> {
  const problem: unknown = await response.json().catch(() => undefined)
  const field = (name: string): string | undefined => {
    const value = (problem as Record<string, unknown> | undefined)?.[name]
    return typeof value === 'string' ? value : undefined
  }
  const message = field('detail') ?? field('title') ?? `The server returned status ${response.status}.`
  return new ApiError(response.status, field('code') ?? `http_${response.status}`, message)
}

function endSession(error: ApiError): void {
  const { state, me } = session.peek()
  if (state === 'ready' || state === 'expired')
    session.value = { state: 'expired', ...(me ? { me } : {}), error }
  else session.value = { state: 'signed-out', error }
}

export async function get<T>(path: string, signal?: AbortSignal): Promise<T> {
  const response = await request(path, signal ? { signal } : {})
  return (await response.json()) as T
}

/** Sends a request that makes a change. If the CSRF value is outdated, refreshes it and retries once. */
export async function send<T>(
  method: 'POST' | 'DELETE',
  path: string,
  body?: unknown,
): Promise<T | undefined> {
  const init = { method, ...(body === undefined ? {} : { body: JSON.stringify(body) }) }
  let response: Response
  try {
    response = await request(path, init)
  } catch (error) {
    if (!(error instanceof ApiError) || error.status !== 403 || !error.code.toLowerCase().includes('csrf'))
      throw error
    await loadMe()
    response = await request(path, init)
  }
  const text = await response.text()
  return text === '' ? undefined : (JSON.parse(text) as T)
}

/** Loads the signed-in user. */
export async function loadMe(): Promise<void> {
  try {
    session.value = { state: 'ready', me: await get<Me>('me') }
  } catch (error) {
    if (!(error instanceof ApiError)) return
    if (error.status === 401) {
      if (await askOtherTabs()) await loadMe()
      return
    }
    if (session.peek().state !== 'ready') session.value = { state: 'refused', error }
  }
}

/**
 * Returns the login URL, which redirects back to the current page. With `again`, the user is prompted even if signed
 * in.
 */
export function loginUrl({ again = false }: { readonly again?: boolean } = {}): string {
  // Path relative to the base path, which the server prepends.
  const to = encodeURIComponent(`/${location.hash}`)
  return `${base.pathname}login?to=${to}${again ? '&again=true' : ''}`
}

/** Builds the query string of a path, omitting empty members. */
export function queryOf(members: Readonly<Record<string, string | undefined>>): string {
  const filled = Object.entries(members).filter((pair): pair is [string, string] => !!pair[1])
  return filled.length === 0 ? '' : `?${new URLSearchParams(filled)}`
}

/**
 * Ends the session and leaves the page. The response contains the logout URL of the provider if the provider has one.
 */
export async function signOut(): Promise<void> {
  const csrf = session.peek().me?.csrf ?? ''
  const response = await fetch(new URL('logout', base), {
    method: 'POST',
    headers: { 'x-gatehouse-csrf': csrf, 'content-type': 'application/json', accept: 'application/json' },
    body: '{}',
  }).catch(() => {
    throw new ApiError(0, 'connection', 'The server does not respond.')
  })
  if (!response.ok) throw await errorOf(response)
  const next: unknown = await response.json().catch(() => undefined)
  const to = (next as { readonly location?: unknown } | undefined)?.location
  if (typeof to === 'string' && /^(?:https?:\/\/|\/(?!\/))/.test(to)) location.assign(to)
  else session.value = { state: 'signed-out' }
}
