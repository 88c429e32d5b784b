/** Opens a URL in the user's browser, without using a shell. */
import { execFile } from 'node:child_process'

/**
 * Returns the program and its arguments for this platform. `browser` is the user's choice (BROWSER): the path of a
 * program.
 */
function browserCommand(url: string, platform: string, browser: string | undefined): [string, string[]] {
  if (browser !== undefined) return [browser, [url]]
  if (platform === 'darwin') return ['open', [url]]
  if (platform === 'win32') return ['rundll32', ['url.dll,FileProtocolHandler', url]]
  return ['xdg-open', [url]]
}

/** Resolves to false when no browser could be started. Opens only http and https URLs. */
export function openBrowser(url: string, browser: string | undefined): Promise<boolean> {
  if (!/^https?:\/\//.test(url)) return Promise.resolve(false)
  const [program, args] = browserCommand(url, process.platform, browser)
  return new Promise((resolve) => {
    const child = execFile(program, args, { timeout: 10_000, windowsHide: true }, (error) => resolve(!error))
    child.unref()
  })
}
