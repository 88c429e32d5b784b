/** Opens a URL in the user's browser, without a shell in between. */
import { execFile } from 'node:child_process'

/** The program and its arguments on this platform. `browser` is the user's own choice (BROWSER), a program's path. */
function browserCommand(url: string, platform: string, browser: string | undefined): [string, string[]] {
  if (browser !== undefined) return [browser, [url]]
  if (platform === 'darwin') return ['open', [url]]
  if (platform === 'win32') return ['rundll32', ['url.dll,FileProtocolHandler', url]]
  return ['xdg-open', [url]]
}

/** Resolves false when nothing could be started. Only http and https URLs are handed on. */
export function openBrowser(url: string, browser: string | undefined): Promise<boolean> {
  if (!/^https?:\/\//.test(url)) return Promise.resolve(false)
  const [program, args] = browserCommand(url, process.platform, browser)
  return new Promise((resolve) => {
    const child = execFile(program, args, { timeout: 10_000, windowsHide: true }, (error) => resolve(!error))
    child.unref()
  })
}
