/**
 * Static files for the pages, loaded once and served from memory.
 *
 * A path without an extension that matches no file returns the HTML document. The document's script reads the path.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { extname, join } from 'node:path'
import { GatehouseError } from '../../../schemas/index.ts'
import { type Exchange, sendBody } from '../../net/index.ts'

const contentTypes: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.json': 'application/json',
}

export interface Assets {
  /** `path` is relative to the base path and begins with a slash. Throws NOT_FOUND. */
  send(exchange: Exchange, path: string): void
}

/**
 * Reads the files of a folder, without subfolders. Returns no files when the folder does not exist. `login` selects how
 * users sign in: a login page, or the launch token in the printed address.
 */
export function readAssets(folder: string, basePath: string, login: 'page' | 'launch'): Assets {
  const files = new Map<string, Buffer>()
  for (const name of namesIn(folder)) files.set(`/${name}`, readFileSync(join(folder, name)))
  const document = files.get('/index.html')
  // URLs in the document are relative to the base path.
  const index =
    document &&
    Buffer.from(document.toString().replaceAll('{{base}}', `${basePath}/`).replace('{{login}}', login))

  return {
    send({ res }, path) {
      const file = path === '/index.html' ? undefined : files.get(path)
      if (file) {
        sendBody(res, 200, contentTypes[extname(path)] ?? 'application/octet-stream', file)
        return
      }
      if (extname(path) !== '' && path !== '/index.html') throw new GatehouseError('NOT_FOUND')
      if (!index)
        throw new GatehouseError('NOT_FOUND', {
          detail: 'the console pages are not built; run make build',
        })
      sendBody(res, 200, contentTypes['.html'] ?? '', index)
    },
  }
}

function namesIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder, { withFileTypes: true }).flatMap((entry) =>
      entry.isFile() ? [entry.name] : [],
    )
  } catch {
    return []
  }
}
