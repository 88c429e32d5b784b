/**
 * The JSON Schema compiler. Programs load this part when they use the first schema
 * (`schemas/workflow/schema-check.ts`).
 */
import addFormats from 'ajv-formats'

export { Ajv2020 } from 'ajv/dist/2020.js'
export const addAllFormats = addFormats.default
