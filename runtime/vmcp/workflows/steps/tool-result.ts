/**
 * What a step makes of the result of its tool.
 *
 * Output is the structured content when that is an object, else a map of the content list: `text`, `text_1` …,
 * `image_0` …, `resource`, `resource_1` …. Text is never taken apart: templates have fromJson.
 * Source: spec document 3, compositeTools.
 */
import {
  isList,
  isObject,
  parseJson,
  type TemplateValue,
  type ValueObject,
} from '../../../expr/template/index.ts'
import { StepError } from '../errors.ts'

export interface ToolResult {
  readonly output: ValueObject
  readonly content: ValueObject
}

/** Throws StepError when the tool says that it failed, or the result is none. */
export function readToolResult(raw: Buffer): ToolResult {
  const result = parsed(raw)
  const content = contentMap(result['content'])
  const structured = result['structuredContent']
  if (result['isError'] === true) throw new StepError(errorText(result), { retryable: true })
  return { output: isObject(structured) ? structured : content, content }
}

function parsed(raw: Buffer): ValueObject {
  try {
    const value = parseJson(raw.toString())
    if (isObject(value)) return value
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error
  }
  throw new StepError('the backend sent a response that is not valid MCP', { retryable: true })
}

/** First text, else what the structured content says about it. */
function errorText({ content, structuredContent }: ValueObject): string {
  const texts = itemsOf(content).map(({ type, text }) => (type === 'text' ? text : undefined))
  const more = isObject(structuredContent) ? structuredContent : {}
  const found = [...texts, more['error'], more['message'], more['text']].find(
    (text): text is string => typeof text === 'string' && text !== '',
  )
  return found ?? 'tool execution error'
}

function itemsOf(content: TemplateValue): readonly ValueObject[] {
  return isList(content) ? content.filter(isObject) : []
}

function contentMap(content: TemplateValue): ValueObject {
  const members: [string, TemplateValue][] = []
  const counts = { text: 0, image: 0, resource: 0 }
  const put = (kind: keyof typeof counts, value: TemplateValue) => {
    if (typeof value !== 'string') return
    const count = counts[kind]++
    members.push([count === 0 && kind !== 'image' ? kind : `${kind}_${count}`, value])
  }
  for (const { type, text, data, resource } of itemsOf(content)) {
    if (type === 'text') put('text', text)
    else if (type === 'image') put('image', data)
    else if (type === 'resource' && isObject(resource)) put('resource', resource['text'] ?? resource['blob'])
  }
  return Object.fromEntries(members)
}
