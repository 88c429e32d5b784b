/**
 * The rules of server.json (schema 2025-12-11) and of the registry API v0.1, written as a JSON Schema of our own. The
 * test registry checks every response against them, so that it cannot drift from the published format.
 */
import { Ajv } from 'ajv'

const text = { type: 'string' }
const object = (properties: object, required: readonly string[] = [], more: object = {}) => ({
  type: 'object',
  properties,
  required,
  ...more,
})
const list = (items: object) => ({ type: 'array', items })
const ref = (name: string) => ({ $ref: `#/definitions/${name}` })

const input = {
  description: text,
  isRequired: { type: 'boolean' },
  isSecret: { type: 'boolean' },
  format: { enum: ['string', 'number', 'boolean', 'filepath'] },
  value: text,
  default: text,
  placeholder: text,
  choices: list(text),
}
const variables = { type: 'object', additionalProperties: ref('input') }
const network = (type: string) =>
  object({ type: { const: type }, url: text, headers: list(ref('namedInput')), variables }, ['type', 'url'])

const definitions = {
  input: object(input),
  namedInput: object({ ...input, variables, name: text }, ['name']),
  argument: {
    anyOf: [
      object({ ...input, variables, type: { const: 'named' }, name: text, isRepeated: { type: 'boolean' } }, [
        'type',
        'name',
      ]),
      object(
        {
          ...input,
          variables,
          type: { const: 'positional' },
          valueHint: text,
          isRepeated: { type: 'boolean' },
        },
        ['type'],
        { anyOf: [{ required: ['valueHint'] }, { required: ['value'] }] },
      ),
    ],
  },
  package: object(
    {
      registryType: text,
      registryBaseUrl: text,
      identifier: text,
      version: { type: 'string', minLength: 1, not: { const: 'latest' } },
      fileSha256: { type: 'string', pattern: '^[a-f0-9]{64}$' },
      runtimeHint: text,
      transport: {
        anyOf: [object({ type: { const: 'stdio' } }, ['type']), network('streamable-http'), network('sse')],
      },
      runtimeArguments: list(ref('argument')),
      packageArguments: list(ref('argument')),
      environmentVariables: list(ref('namedInput')),
    },
    ['registryType', 'identifier', 'transport'],
  ),
  server: object(
    {
      $schema: text,
      name: { type: 'string', minLength: 3, maxLength: 200, pattern: '^[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+$' },
      title: { type: 'string', minLength: 1, maxLength: 100 },
      description: { type: 'string', minLength: 1, maxLength: 100 },
      version: { type: 'string', maxLength: 255 },
      websiteUrl: text,
      repository: object({ url: text, source: text, id: text, subfolder: text }, ['url', 'source']),
      icons: list(object({ src: { type: 'string', maxLength: 255 } }, ['src'])),
      packages: list(ref('package')),
      remotes: list({ anyOf: [network('streamable-http'), network('sse')] }),
      _meta: { type: 'object' },
    },
    ['name', 'description', 'version'],
  ),
  response: object(
    {
      server: ref('server'),
      _meta: object(
        {
          'io.modelcontextprotocol.registry/official': object(
            {
              status: { enum: ['active', 'deprecated', 'deleted'] },
              publishedAt: text,
              updatedAt: text,
              isLatest: { type: 'boolean' },
            },
            ['status', 'publishedAt', 'isLatest'],
          ),
        },
        [],
      ),
    },
    ['server', '_meta'],
  ),
}

const ajv = new Ajv({ strict: false, allErrors: true })

/** Validates the response for one version of a server. */
export const validateServerResponse = ajv.compile({ definitions, ...ref('response') })
