/** Guardrail code that hooks and runtime share: regular expressions, and checks that JSON Schema cannot express. */
export { guardrailViolations, guardrailWarnings } from './check.ts'
export { LinearExpression, ExpressionSearch } from './expression.ts'
