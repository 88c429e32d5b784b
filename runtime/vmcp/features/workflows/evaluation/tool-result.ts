/**
 * Converts a tool's result to the output of the tool's step.
 *
 * If the structured content is an object, the output is the structured content. Otherwise, the output is a map of the
 * content list: `text`, `text_1` …, `image_0` …, `resource`, `resource_1` …. Text is never parsed, but templates can
 * use fromJson.
 * Source: docs/reference/specification/virtual-server.md#compositeTools, compositeTools.
 */
import {
  EvaluationError,
  isList,
  isObject,
  type TemplateMeter,
  parseJson,
  type TemplateValue,
  type ValueObject,
} from '../../../../expr/template/index.ts'
import { StepError } from '../errors.ts'

export interface ToolResult {
  readonly output: ValueObject
  readonly content: ValueObject
}

/** Returns a tool's failure message, or undefined after success. Throws StepError for an invalid result. */
export function failureIn(text: string, meter: TemplateMeter): string | undefined {
  const result = parsed(text, meter)
  return result['isError'] === true ? errorText(result) : undefined
}

/** Reads a tool's result. Throws StepError for an invalid result. */
export function readToolResult(text: string, meter: TemplateMeter): ToolResult {
  const result = parsed(text, meter)
  const content = contentMap(result['content'])
  const structured = result['structuredContent']
  return { output: isObject(structured) ? structured : content, content }
}

function parsed(text: string, meter: TemplateMeter): ValueObject {
  try {
    const value = parseJson(text, meter)
    if (isObject(value)) return value
  } catch (error) {
    if (error instanceof EvaluationError) throw new StepError(`the result: ${error.message}`)
    if (!(error instanceof SyntaxError)) throw error
  }
  throw new StepError('the backend sent a response that is not valid MCP', { retryable: true })
}

/** Returns the first text. If the result contains no text, returns the message in the structured content. */
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
