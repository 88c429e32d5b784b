/**
 * Formats lists and results from servers as text. Performs no I/O. The caller removes characters that are unsafe on a
 * terminal.
 * Source: MCP 2025-11-25, tools, resources, prompts.
 */
import { isFields } from '../../../schemas/index.ts'

type Fields = Readonly<Record<string, unknown>>

/** The printed text for a tool, resource or prompt: first what the user types to use it, then the details. */
export interface TextRow {
  readonly head: string
  readonly details: readonly string[]
}

export function toolRow(tool: Fields): TextRow {
  const schema = isFields(tool['inputSchema']) ? tool['inputSchema'] : {}
  const properties = isFields(schema['properties']) ? schema['properties'] : {}
  const required: readonly unknown[] = Array.isArray(schema['required']) ? schema['required'] : []
  const names = Object.entries(properties).map(([name, property]) =>
    argumentForm(name, typeName(property), required.includes(name)),
  )
  return { head: [textOf(tool['name']), ...names].join(' '), details: summaryOf(tool) }
}

export function promptRow(prompt: Fields): TextRow {
  const promptArguments: readonly unknown[] = Array.isArray(prompt['arguments']) ? prompt['arguments'] : []
  const names = promptArguments
    .filter(isFields)
    .map(({ name, required }) => argumentForm(textOf(name), 'string', required === true))
  return { head: [textOf(prompt['name']), ...names].join(' '), details: summaryOf(prompt) }
}

export function resourceRow(resource: Fields): TextRow {
  const size = typeof resource['size'] === 'number' ? [`${resource['size']} bytes`] : []
  const about = [textOf(resource['title'] ?? resource['name']), textOf(resource['mimeType']), ...size]
  return {
    head: textOf(resource['uri'] ?? resource['uriTemplate']),
    details: [about.filter((part) => part !== '').join(' · '), ...summaryOf({ ...resource, title: '' })],
  }
}

function argumentForm(name: string, type: string, required: boolean): string {
  return required ? `${name}=<${type}>` : `[${name}=<${type}>]`
}

function typeName(property: unknown): string {
  const type: unknown = isFields(property) ? property['type'] : undefined
  if (Array.isArray(type)) return type.map(String).join('|')
  return typeof type === 'string' ? type : 'any'
}

/** Returns the first paragraph of the description, or the title. */
function summaryOf({ title, description }: Fields): string[] {
  const text = textOf(description) || textOf(title)
  const first = text.trim().split(/\n\s*\n/)[0] ?? ''
  return first === '' ? [] : [first.replaceAll(/\s+/g, ' ')]
}

/** Returns the content of a tool's result, or its structured content when there is no other content. */
export function toolResultText(result: Fields): string {
  const content: readonly unknown[] = Array.isArray(result['content']) ? result['content'] : []
  if (content.length === 0 && result['structuredContent'] !== undefined)
    return JSON.stringify(result['structuredContent'], undefined, 2)
  return content.map(contentText).join('\n')
}

export function promptText(result: Fields): string {
  const messages: readonly unknown[] = Array.isArray(result['messages']) ? result['messages'] : []
  return messages
    .filter(isFields)
    .map(({ role, content }) => `${textOf(role)}: ${contentText(content)}`)
    .join('\n')
}

export interface ResourceContent {
  readonly uri: string
  readonly type: string
  readonly text: string | undefined
  readonly bytes: Buffer | undefined
}

export function resourceContents(result: Fields): readonly ResourceContent[] {
  const contents: readonly unknown[] = Array.isArray(result['contents']) ? result['contents'] : []
  return contents.filter(isFields).map((one) => ({
    uri: textOf(one['uri']),
    type: textOf(one['mimeType']) || 'unknown type',
    text: typeof one['text'] === 'string' ? one['text'] : undefined,
    bytes: typeof one['blob'] === 'string' ? Buffer.from(one['blob'], 'base64') : undefined,
  }))
}

export function blobText({ type, bytes, uri }: ResourceContent): string {
  return `[${type}, ${bytes?.length ?? 0} bytes: ${uri}]`
}

function contentText(content: unknown): string {
  if (!isFields(content)) return ''
  switch (content['type']) {
    case 'text':
      return textOf(content['text'])
    case 'image':
    case 'audio': {
      const size = Buffer.from(textOf(content['data']), 'base64').length
      return `[${content['type']} ${textOf(content['mimeType'])}, ${size} bytes; use -o json to print it]`
    }
    case 'resource_link':
      return `[${textOf(content['uri'])} ${textOf(content['name'])}]`
    case 'resource': {
      const [inner] = resourceContents({ contents: [content['resource']] })
      return inner?.text ?? (inner ? blobText(inner) : '')
    }
    default:
      return `[content of type ${textOf(content['type'])}; use -o json to print it]`
  }
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : ''
}
