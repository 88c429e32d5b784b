/** Templates of workflows: evaluates a syntax tree with data to text, or a single action to its value. */
export { expand, isSingleAction, valueOf } from './evaluate.ts'
export { jsonText, parseJson, structureOf } from './json.ts'
export { defaultLimits, TemplateMeter, WorkLimitError } from './meter.ts'
export { noValue, valueText } from './print.ts'
export { EvaluationError, isList, isObject, type TemplateValue, type ValueObject } from './value.ts'
