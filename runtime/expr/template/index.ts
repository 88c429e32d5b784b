/** Templates of workflows: from a syntax tree and data to text, or to the value of a single action. */
export { expand, isSingleAction, valueOf } from './evaluate.ts'
export { jsonText, parseJson } from './json.ts'
export { defaultLimits, type Limits } from './meter.ts'
export { noValue, valueText } from './print.ts'
export { EvaluationFault, isList, isObject, type Value, type ValueObject } from './value.ts'
