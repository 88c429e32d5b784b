/** Validators for the published schemas of the MCP registry API and of server cards (`test/fixtures/published-schemas/`). */
import { readFileSync } from 'node:fs'
import { Ajv } from 'ajv'
import { Ajv2020 } from 'ajv/dist/2020.js'
import addFormats from 'ajv-formats'

const directory = 'test/fixtures/published-schemas'
const read = (file: string): object => JSON.parse(readFileSync(`${directory}/${file}`, 'utf8')) as object

const cards = new Ajv2020({ strict: false, allErrors: true })
addFormats.default(cards)
const registry = new Ajv({ strict: false, allErrors: true })
addFormats.default(registry)
registry.addSchema(read('server.schema.json'))
registry.addSchema(read('registry-api.json'), 'api')

const validators = {
  ServerCard: cards.compile({ ...read('server-card.schema.json'), $ref: '#/$defs/ServerCard' }),
  ServerList: registry.compile({ $ref: 'api#/definitions/ServerList' }),
  ServerResponse: registry.compile({ $ref: 'api#/definitions/ServerResponse' }),
}

/** Returns the errors of a document, one per line; '' for a valid document. */
export function publishedErrors(schema: keyof typeof validators, document: unknown): string {
  const validate = validators[schema]
  if (validate(document)) return ''
  return (validate.errors ?? []).map(({ instancePath, message }) => `${instancePath} ${message}`).join('\n')
}
