/** Public API of workflow templates: evaluates a syntax tree with data to text, or to the value of a single action. */
export { expand, isSingleAction, valueOf } from './evaluate.ts'
export { jsonText, parseJson, structureOf } from './json.ts'
export { defaultLimits, TemplateMeter, WorkLimitError } from './meter.ts'
export { noValue, valueText } from './print.ts'
export { EvaluationError, isList, isObject, type TemplateValue, type ValueObject } from './value.ts'
