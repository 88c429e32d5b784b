/**
 * State that earlier builds stored, used by the code of today. Each folder of test/fixtures/stored-state contains the state of
 * one build. A folder is never changed; delete it when releases may drop its format.
 *
 *   node test/behaviour/stored-state.test.ts --update    records the present build in a new folder
 */
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import t from 'tap'
import { authServerPart } from '../helpers/stored-state/authserver.ts'
import { clientEditsPart, loginsPart, toolLocksPart } from '../helpers/stored-state/files.ts'
import { sealedValuesPart } from '../helpers/stored-state/sealed-values.ts'
import { sessionParts } from '../helpers/stored-state/sessions.ts'

t.setTimeout(120_000)

const folder = resolve(import.meta.dirname, '../fixtures/stored-state')
const parts = [authServerPart, sealedValuesPart, ...sessionParts, loginsPart, clientEditsPart, toolLocksPart]

const versions = (): readonly string[] => readdirSync(folder).toSorted((a, b) => Number(a) - Number(b))

if (process.argv.includes('--update'))
  await t.test('record', async (t) => {
    mkdirSync(folder, { recursive: true })
    const next = join(folder, String(Number(versions().at(-1) ?? 0) + 1))
    const files = []
    for (const part of parts)
      files.push([`${part.name}.json`, `${JSON.stringify(await part.record(t), undefined, 2)}\n`] as const)
    mkdirSync(next)
    for (const [file, text] of files) writeFileSync(join(next, file), text)
  })

for (const version of versions())
  for (const { name, skip = false, check } of parts)
    t.test(`stored state ${version}: ${name}`, { skip }, (t) =>
      check(t, JSON.parse(readFileSync(join(folder, version, `${name}.json`), 'utf8'))),
    )
