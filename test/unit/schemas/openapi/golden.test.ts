/**
 * The whole conversion of a small document for OpenAPI 3.0 and for 3.1. `--update` writes the expected files; review the
 * diff before you commit it.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { resolve } from 'node:path'
import t from 'tap'
import { convertOpenApi } from '../../../../schemas/openapi/index.ts'
import { everyMethod } from '../../../helpers/openapi/documents.ts'

const folder = resolve(import.meta.dirname, '../../../fixtures/openapi')
const documents = ['orders-3.0.yaml', 'reports-3.1.json']

for (const name of documents) {
  await t.test(`golden: ${name}`, async (t) => {
    const path = `${folder}/${name}.tools.json`
    const found = convertOpenApi(readFileSync(`${folder}/${name}`, 'utf8'), {
      ...everyMethod,
      response: { output: 'enforce' },
    })
    const text = `${JSON.stringify(found, undefined, 2)}\n`
    if (process.argv.includes('--update')) writeFileSync(path, text)
    t.same(JSON.parse(text), JSON.parse(readFileSync(path, 'utf8')))
    t.same(structuredClone(found), found, 'plain data')
  })
}
