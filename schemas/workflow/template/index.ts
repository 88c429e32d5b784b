/** Public API of the template parser. */
export { parseTemplate } from './parser.ts'
export { type Path, pathsRead } from './reads.ts'
export {
  type Command,
  type FunctionName,
  type Node,
  type Operand,
  type Pipe,
  type Template,
  TemplateError,
} from './tree.ts'
