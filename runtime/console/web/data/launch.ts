/**
 * The launch token for a console without a login. The token comes from the fragment of the printed address, stays in
 * this tab, and is sent in a header. Another tab with the same address can share the token.
 */
const key = 'gatehouse-launch'
const waitMs = 300

const [, given] = /^#launch=([\w.~-]{1,200})$/.exec(location.hash) ?? []
if (given !== undefined) {
  sessionStorage.setItem(key, given)
  history.replaceState(null, '', location.pathname)
}

/** True when the console has no login page, and only the printed address gives access. */
export const needsLaunch = document.documentElement.dataset['login'] === 'launch'

/** Stores the token contained in a printed address. Returns false if the text contains no token. */
export function storeLaunch(text: string): boolean {
  const [, token] = /(?:^|#launch=)([\w.~-]{1,200})\s*$/.exec(text.trim()) ?? []
  if (token === undefined) return false
  sessionStorage.setItem(key, token)
  return true
}

export function launchToken(): string | undefined {
  return sessionStorage.getItem(key) ?? undefined
}

const channel = new BroadcastChannel(`${key} ${new URL('./', import.meta.url).pathname}`)
channel.addEventListener('message', ({ data }: MessageEvent<unknown>) => {
  const token = launchToken()
  if (data === 'ask' && token !== undefined) channel.postMessage({ token })
})

/** Resolves to true when another tab has a new token, at most once per token. */
export function askOtherTabs(): Promise<boolean> {
  return new Promise((resolve) => {
    const end = (found: boolean): void => {
      clearTimeout(timer)
      channel.removeEventListener('message', hear)
      resolve(found)
    }
    const hear = ({ data }: MessageEvent<unknown>): void => {
      const token = (data as { readonly token?: unknown } | null)?.token
      if (typeof token !== 'string' || token === launchToken()) return
      sessionStorage.setItem(key, token)
      end(true)
    }
    const timer = setTimeout(() => end(false), waitMs)
    channel.addEventListener('message', hear)
    channel.postMessage('ask')
  })
}
