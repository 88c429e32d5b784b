/**
 * The items of the fixture backend, in both protocol eras: those that the public conformance suite requires, and a few
 * of our own. Plain data; the servers in this folder add everything that needs a live connection.
 */
const pngImage =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=='
const wavAudio = 'UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA='

const noArguments = { type: 'object', properties: {} } as const

export interface ToolDefinition {
  readonly name: string
  readonly description: string
  readonly inputSchema: { readonly type: 'object'; readonly [key: string]: unknown }
  readonly [key: string]: unknown
}

function tool(
  name: string,
  description: string,
  inputSchema: ToolDefinition['inputSchema'] = noArguments,
): ToolDefinition {
  return { name, description, inputSchema }
}

function withText(name: string): ToolDefinition['inputSchema'] {
  return { type: 'object', properties: { [name]: { type: 'string' } }, required: [name] }
}

/** Tools whose result never changes. */
export const fixedResults: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {
  test_simple_text: { content: [{ type: 'text', text: 'This is a simple text response for testing.' }] },
  test_image_content: { content: [{ type: 'image', data: pngImage, mimeType: 'image/png' }] },
  test_audio_content: { content: [{ type: 'audio', data: wavAudio, mimeType: 'audio/wav' }] },
  test_embedded_resource: {
    content: [
      {
        type: 'resource',
        resource: {
          uri: 'test://embedded-resource',
          mimeType: 'text/plain',
          text: 'This is an embedded resource content.',
        },
      },
    ],
  },
  test_multiple_content_types: {
    content: [
      { type: 'text', text: 'Multiple content types test:' },
      { type: 'image', data: pngImage, mimeType: 'image/png' },
      {
        type: 'resource',
        resource: {
          uri: 'test://mixed-content-resource',
          mimeType: 'application/json',
          text: '{"test":"data","value":123}',
        },
      },
    ],
  },
  test_error_handling: {
    isError: true,
    content: [{ type: 'text', text: 'This tool intentionally returns an error for testing' }],
  },
  json_schema_2020_12_tool: { content: [{ type: 'text', text: 'ok' }] },
  test_mirrored_header: { content: [{ type: 'text', text: 'ok' }] },
}

const schema202012 = {
  $schema: 'https://json-schema.org/draft/2020-12/schema',
  type: 'object',
  $defs: {
    address: {
      $anchor: 'addressDef',
      type: 'object',
      properties: { street: { type: 'string' }, city: { type: 'string' } },
    },
  },
  properties: {
    name: { type: 'string' },
    address: { $ref: '#/$defs/address' },
    contactMethod: { type: 'string', enum: ['phone', 'email'] },
    phone: { type: 'string' },
    email: { type: 'string' },
  },
  allOf: [{ anyOf: [{ required: ['phone'] }, { required: ['email'] }] }],
  if: { properties: { contactMethod: { const: 'phone' } }, required: ['contactMethod'] },
  then: { required: ['phone'] },
  else: { required: ['email'] },
  additionalProperties: false,
} as const

export const commonTools: readonly ToolDefinition[] = [
  tool('test_simple_text', 'Returns text'),
  tool('test_image_content', 'Returns an image'),
  tool('test_audio_content', 'Returns audio'),
  tool('test_embedded_resource', 'Returns an embedded resource'),
  tool('test_multiple_content_types', 'Returns several kinds of content'),
  tool('test_error_handling', 'Always fails'),
  tool('test_tool_with_progress', 'Reports progress'),
  tool('json_schema_2020_12_tool', 'Tool with JSON Schema 2020-12 features', schema202012),
  tool('test_mirrored_header', 'Has an argument that is mirrored in a header', {
    type: 'object',
    properties: { region: { type: 'string', 'x-mcp-header': 'Region' } },
    required: ['region'],
  }),
  tool('test_trigger_tool_change', 'Adds or removes a tool'),
  tool('test_trigger_prompt_change', 'Adds or removes a prompt'),
  tool('test_trigger_resource_update', 'Updates test://watched-resource'),
  tool('echo', 'Returns its arguments as they arrived', { type: 'object' }),
  tool('wait', 'Waits until it is cancelled'),
]

/** Tools of the session era. The stateless fixture has them too, and sends its requests in results. */
export const sessionTools: readonly ToolDefinition[] = [
  tool('test_tool_with_logging', 'Logs while it runs'),
  tool('test_sampling', 'Asks the client for a completion', withText('prompt')),
  tool('test_elicitation', 'Asks the user for input', withText('message')),
  tool('test_elicitation_sep1034_defaults', 'Asks with default values'),
  tool('test_elicitation_sep1330_enums', 'Asks with all kinds of enums'),
  tool('test_elicitation_url', 'Sends the user to a URL'),
  tool('test_roots', 'Lists the roots of the client'),
  tool('test_two_questions', 'Asks twice, one after the other'),
]

/** Tools that exist only with sessions. */
export const sessionIdTool: ToolDefinition = tool('session_id', 'Names the session it runs in')

/** Tools of the stateless era. The session fixture has them too, and sends its requests during the call. */
export const statelessTools: readonly ToolDefinition[] = [
  'test_input_required_result_elicitation',
  'test_input_required_result_sampling',
  'test_input_required_result_list_roots',
  'test_input_required_result_request_state',
  'test_input_required_result_multiple_inputs',
  'test_input_required_result_multi_round',
  'test_input_required_result_tampered_state',
  'test_input_required_result_capabilities',
  'test_missing_capability',
  'test_streaming_elicitation',
  'test_logging_tool',
].map((name) => tool(name, 'Asks for input'))

export const resources = [
  { uri: 'test://static-text', name: 'static-text', description: 'Static text', mimeType: 'text/plain' },
  { uri: 'test://static-binary', name: 'static-binary', description: 'Static binary', mimeType: 'image/png' },
  {
    uri: 'test://watched-resource',
    name: 'watched-resource',
    description: 'Changes',
    mimeType: 'text/plain',
  },
]
export const resourceTemplates = [
  {
    uriTemplate: 'test://template/{id}/data',
    name: 'template',
    description: 'By id',
    mimeType: 'application/json',
  },
]

/** Returns the contents of a resource, or undefined when it does not exist. */
export function readResource(uri: string): { contents: Record<string, unknown>[] } | undefined {
  switch (uri) {
    case 'test://static-text':
      return {
        contents: [{ uri, mimeType: 'text/plain', text: 'This is the content of the static text resource.' }],
      }
    case 'test://static-binary':
      return { contents: [{ uri, mimeType: 'image/png', blob: pngImage }] }
    case 'test://watched-resource':
      return { contents: [{ uri, mimeType: 'text/plain', text: 'watched' }] }
    default: {
      const id = /^test:\/\/template\/([^/]+)\/data$/.exec(uri)?.[1]
      if (id === undefined) return undefined
      const text = JSON.stringify({ id, templateTest: true, data: `Data for ID: ${id}` })
      return { contents: [{ uri, mimeType: 'application/json', text }] }
    }
  }
}

export const prompts = [
  { name: 'test_simple_prompt', description: 'Simple' },
  {
    name: 'test_prompt_with_arguments',
    description: 'With arguments',
    arguments: [
      { name: 'arg1', description: 'First test argument', required: true },
      { name: 'arg2', description: 'Second test argument', required: true },
    ],
  },
  {
    name: 'test_prompt_with_embedded_resource',
    description: 'With a resource',
    arguments: [{ name: 'resourceUri', description: 'URI of the resource to embed', required: true }],
  },
  { name: 'test_prompt_with_image', description: 'With an image' },
]

/** A prompt that requires a response of the user first. */
export const askingPrompt = { name: 'test_input_required_result_prompt', description: 'Asks' }

type PromptArguments = Readonly<Record<string, string>>

function message(content: Record<string, unknown>) {
  return { role: 'user' as const, content }
}

/** Returns the messages of a prompt, or undefined when it does not exist. */
export function getPrompt(
  name: string,
  args: PromptArguments,
): { messages: ReturnType<typeof message>[] } | undefined {
  switch (name) {
    case 'test_simple_prompt':
      return { messages: [message({ type: 'text', text: 'This is a simple prompt for testing.' })] }
    case 'test_prompt_with_arguments': {
      const text = `Prompt with arguments: arg1='${args['arg1']}', arg2='${args['arg2']}'`
      return { messages: [message({ type: 'text', text })] }
    }
    case 'test_prompt_with_embedded_resource':
      return {
        messages: [
          message({
            type: 'resource',
            resource: {
              uri: args['resourceUri'],
              mimeType: 'text/plain',
              text: 'Embedded resource content for testing.',
            },
          }),
          message({ type: 'text', text: 'Please process the embedded resource above.' }),
        ],
      }
    case 'test_prompt_with_image':
      return {
        messages: [
          message({ type: 'image', data: pngImage, mimeType: 'image/png' }),
          message({ type: 'text', text: 'Please analyze the image above.' }),
        ],
      }
    default:
      return undefined
  }
}

/** Returns completions for any argument. */
export function complete(value: string): {
  completion: { values: string[]; total: number; hasMore: boolean }
} {
  const values = ['paris', 'park', 'party'].filter((word) => word.startsWith(value))
  return { completion: { values, total: values.length, hasMore: false } }
}

export const askForUser = {
  type: 'object' as const,
  properties: {
    username: { type: 'string' as const, description: "User's response" },
    email: { type: 'string' as const, description: "User's email address" },
  },
  required: ['username', 'email'],
}

export const askWithDefaults = {
  type: 'object' as const,
  properties: {
    name: { type: 'string' as const, default: 'John Doe' },
    age: { type: 'integer' as const, default: 30 },
    score: { type: 'number' as const, default: 95.5 },
    status: { type: 'string' as const, enum: ['active', 'inactive', 'pending'], default: 'active' },
    verified: { type: 'boolean' as const, default: true },
  },
}

export const askWithEnums = {
  type: 'object' as const,
  properties: {
    untitledSingle: { type: 'string' as const, enum: ['option1', 'option2', 'option3'] },
    titledSingle: {
      type: 'string' as const,
      oneOf: [
        { const: 'value1', title: 'First Option' },
        { const: 'value2', title: 'Second Option' },
        { const: 'value3', title: 'Third Option' },
      ],
    },
    legacyEnum: {
      type: 'string' as const,
      enum: ['opt1', 'opt2', 'opt3'],
      enumNames: ['Option One', 'Option Two', 'Option Three'],
    },
    untitledMulti: {
      type: 'array' as const,
      items: { type: 'string' as const, enum: ['option1', 'option2', 'option3'] },
    },
    titledMulti: {
      type: 'array' as const,
      items: {
        anyOf: [
          { const: 'value1', title: 'First Choice' },
          { const: 'value2', title: 'Second Choice' },
          { const: 'value3', title: 'Third Choice' },
        ],
      },
    },
  },
}
