/** A client's file in a test folder, and the operations on it. */
import { readFileSync, realpathSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Test } from 'tap'
import { type FileOperation } from '../../../runtime/toolkit/client-files/operate.ts'
import { type Location } from '../../../runtime/toolkit/clients/index.ts'

export const entry = { url: 'http://127.0.0.1:4483/mcp' }

export const original =
  '{\n  // mine\n  "mcpServers": {\n    "a": { "command": "x", "env": { "T": "canary" } } // theirs\n  }\n}\n'

function operationOn(file: string, folder: string, given: Partial<FileOperation> = {}): FileOperation {
  const location: Location = {
    client: 'cursor',
    scope: 'user',
    profile: undefined,
    file,
    key: ['mcpServers'],
    row: { scope: 'user', path: file },
  }
  return {
    location,
    name: 'gatehouse',
    records: join(folder, 'state'),
    replace: false,
    dryRun: false,
    now: () => new Date(),
    ...given,
  }
}

/** A file in a separate folder, and an operation on it. */
export function setUp(t: Pick<Test, 'testdir'>, contents: string | undefined = original) {
  const folder = realpathSync(t.testdir({}))
  const file = join(folder, 'mcp.json')
  if (contents !== undefined) writeFileSync(file, contents)
  return {
    folder,
    file,
    read: () => readFileSync(file, 'utf8'),
    on: (given: Partial<FileOperation> = {}) => operationOn(file, folder, given),
  }
}
