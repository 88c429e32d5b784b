/** Lists, tuples, dicts, ranges, and functions that iterate over them. */
import type { Case } from './case.ts'

export const collections: readonly Case[] = [
  { script: 'return [1, 2] + [3]', value: '[1, 2, 3]' },
  { script: 'return [1] + (2,)', error: '1:12: unknown binary op: list + tuple' },
  {
    script: 'return (1,) + (2,), (1, 2) * 2, [0] * 3, 2 * [1]',
    value: '((1, 2), (1, 2, 1, 2), [0, 0, 0], [1, 1])',
  },
  {
    script:
      'return [1, 2, 3][1:], [1, 2, 3][-2:], [1, 2, 3][::-1], (1, 2, 3)[0:2], [1, 2, 3][5:], [1,2,3][2:0:-1]',
    value: '([2, 3], [2, 3], [3, 2, 1], (1, 2), [], [3, 2])',
  },
  { script: 'return [1][1]', error: '1:11: list index 1 out of range [-1:0]' },
  { script: 'return (1,)[5]', error: '1:12: tuple index 5 out of range [-1:0]' },
  { script: 'return [][0]', error: '1:10: index 0 out of range: empty list' },
  { script: 'return [1]["a"]', error: '1:11: list index: got string, want int' },
  { script: 'return [1][::0]', error: '1:11: zero is not a valid slice step' },
  { script: 'return [1, [2]] == [1, [2]], (1,) == [1], [] == ()', value: '(True, False, False)' },
  { script: 'return [1, 2] < [1, 3], (1, 2) < (1, 2, 0), [2] > [1, 9]', value: '(True, True, True)' },
  { script: 'return [1] < (1,)', error: '1:12: list < tuple not implemented' },
  { script: 'return [1] < ["a"]', error: '1:12: int < string not implemented' },
  {
    script: 'return {} == {}, {"a": 1} == {"a": 1.0}, {"a": 1, "b": 2} == {"b": 2, "a": 1}',
    value: '(True, True, True)',
  },
  { script: 'return {} < {}', error: '1:11: dict < dict not implemented' },
  { script: 'return {"a": 1}["b"]', error: '1:16: key "b" not in dict' },
  { script: 'return {"a": 1, "a": 2}', error: '1:20: duplicate key: "a"' },
  { script: 'return {[]: 1}', error: '1:11: unhashable type: list' },
  { script: 'return {(1, 2): "t"}[(1, 2)], {1: "i"}[1.0], {1.0: "f"}[1]', value: '("t", "i", "f")' },
  { script: 'return {None: 1, True: 2, 1: 3}', value: '{None: 1, True: 2, 1: 3}' },
  { script: 'return {1: 1, 1.0: 2}', error: '1:18: duplicate key: 1.0' },
  { script: 'return "a" in {"a": 1}, 1 in {}, [] in {}', value: '(True, False, False)' },
  { script: 'return {"a": 1} | {"b": 2, "a": 3}', value: '{"a": 3, "b": 2}' },
  { script: 'return {} | []', error: '1:11: unknown binary op: dict | list' },
  {
    script: 'return [x * 2 for x in range(4) if x % 2], {k: v for k, v in [("a", 1)]}',
    value: '([2, 6], {"a": 1})',
  },
  { script: 'return [(x, y) for x in range(2) for y in range(x + 1)]', value: '[(0, 0), (1, 0), (1, 1)]' },
  { script: 'return [x for x in [1, 2] for x in [x, x + 10]]', value: '[1, 11, 2, 12]' },
  { script: 'return [x for x in 5]', error: '1:11: int value is not iterable' },
  { script: 'return len([1]), len({}), len((1, 2)), len(range(5)), len("ab")', value: '(1, 0, 2, 5, 2)' },
  { script: 'return len(5)', error: '1:11: len: value of type int has no len' },
  {
    script:
      'return list(range(5)), list(range(5, 0, -2)), range(3), range(1, 3), range(0, 5, 2), range(5)[1:3], range(5)[-1]',
    value: '([0, 1, 2, 3, 4], [5, 3, 1], range(3), range(1, 3), range(0, 5, 2), range(1, 3), 4)',
  },
  { script: 'return range(1, 2, 0)', error: '1:13: range: step argument must not be zero' },
  { script: 'return range("a")', error: '1:13: range: for parameter start: got string, want int' },
  {
    script: 'return range(5) == range(0, 5, 1), range(0) == range(1, 1), range(3) in [range(3)]',
    value: '(True, True, True)',
  },
  { script: 'return list(5)', error: '1:12: list: for parameter 1: got int, want iterable' },
  {
    script: 'return list({"b": 1, "a": 2}), tuple([1]), list((1, 2)), dict([("a", 1)], b=2), dict({"x": 1})',
    value: '(["b", "a"], (1,), [1, 2], {"a": 1, "b": 2}, {"x": 1})',
  },
  {
    script: 'return dict([1])',
    error: '1:12: dict: dictionary update sequence element #0 is not iterable (int)',
  },
  {
    script: 'return dict([(1, 2, 3)])',
    error: '1:12: dict: dictionary update sequence element #0 has length 3, want 2',
  },
  { script: 'return dict(1)', error: '1:12: dict: got int, want iterable' },
  { script: 'return dict([([], 1)])', error: '1:12: unhashable type: list' },
  {
    script:
      'return sorted([3, 1, 2]), sorted([3, 1, 2], reverse=True), sorted(["bb", "a"], key=len), sorted({"b": 1, "a": 1})',
    value: '([1, 2, 3], [3, 2, 1], ["a", "bb"], ["a", "b"])',
  },
  {
    script: 'return sorted([("b", 1), ("a", 1), ("a", 0)], key=lambda p: p[0])',
    value: '[("a", 1), ("a", 0), ("b", 1)]',
  },
  { script: 'return sorted([1, "a"])', error: '1:14: string < int not implemented' },
  { script: 'return sorted(5)', error: '1:14: sorted: for parameter iterable: got int, want iterable' },
  { script: 'return sorted([1], key=5)', error: '1:14: sorted: for parameter key: got int, want callable' },
  { script: 'return reversed([1, 2, 3]), reversed(range(3))', value: '([3, 2, 1], [2, 1, 0])' },
  { script: 'return reversed("abc")', error: '1:16: reversed: for parameter 1: got string, want iterable' },
  {
    script:
      'return enumerate(["a", "b"]), enumerate(["a"], 5), zip([1, 2], ["a"]), zip(), zip([1], [2], [3])',
    value: '([(0, "a"), (1, "b")], [(5, "a")], [(1, "a")], [], [(1, 2, 3)])',
  },
  { script: 'return enumerate("ab")', error: '1:17: enumerate: for parameter 1: got string, want iterable' },
  { script: 'return zip([1], 2)', error: '1:11: zip: argument #2 is not iterable: int' },
  { script: 'return any([0, 1]), all([0, 1]), any([]), all([])', value: '(True, False, False, True)' },
  { script: 'return any(5)', error: '1:11: any: for parameter 1: got int, want iterable' },
  {
    script: 'return max(["a", "bbb"], key=len), min([3, 1], key=lambda x: -x), max("a", "b")',
    value: '("bbb", 3, "b")',
  },
  { script: 'return max([])', error: '1:11: max: argument is an empty sequence' },
  { script: 'return max(5)', error: '1:11: max: int value is not iterable' },
  { script: 'return max()', error: '1:11: max requires at least one positional argument' },
  { script: 'return min(1, "a")', error: '1:11: string < int not implemented' },
  {
    script: 'return bool([]), bool([0]), bool({}), bool(()), bool(None), bool("")',
    value: '(False, True, False, False, False, False)',
  },
  {
    script:
      'return type([]), type({}), type(()), type(range(1)), type(None), type(True), type(len), type(lambda: 1), type([].append)',
    value:
      '("list", "dict", "tuple", "range", "NoneType", "bool", "builtin_function_or_method", "function", "builtin_function_or_method")',
  },
  {
    script: 'return str([1, "a", None, True, 1.5, (1,), {}, {"k": [1]}]), str(()), str((1, 2))',
    value: '("[1, \\"a\\", None, True, 1.5, (1,), {}, {\\"k\\": [1]}]", "()", "(1, 2)")',
  },
  {
    script: 'return len, [].append, "".join, str(lambda x: x)',
    value:
      '(<built-in function len>, <built-in method append of list value>, <built-in method join of string value>, "<function lambda>")',
  },
  {
    script: 'return dir([]), dir({})',
    value:
      '(["append", "clear", "extend", "index", "insert", "pop", "remove"], ["clear", "get", "items", "keys", "pop", "popitem", "setdefault", "update", "values"])',
  },
  { script: 'return [1, 2].foo', error: '1:14: list has no .foo field or method' },
  { script: 'return {}.keyz', error: '1:10: dict has no .keyz field or method (did you mean .keys?)' },
  { script: 'return None.x', error: '1:12: NoneType has no .x field or method' },
  { script: 'return (1).x', error: '1:11: int has no .x field or method' },
  { script: 'return {"a": 1}.get("a"), {"a": 1}.get("b"), {"a": 1}.get("b", 5)', value: '(1, None, 5)' },
  {
    script: 'return {"a": 1, "b": 2}.items(), {"a": 1}.keys(), {"a": 1}.values()',
    value: '([("a", 1), ("b", 2)], ["a"], [1])',
  },
  { script: 'return {}.popitem()', error: '1:18: popitem: empty dict' },
  { script: 'return {}.pop("a")', error: '1:14: pop: missing key' },
  { script: 'return {}.pop("a", 1)', value: '1' },
  { script: 'return {}.get()', error: '1:14: get: got 0 arguments, want at least 1' },
  { script: 'return [1, 2, 1].index(1), [1, 2, 1].index(1, 1), [1, 2].index(2, -1)', value: '(0, 2, 1)' },
  { script: 'return [1].index(5)', error: '1:17: index: value not in list' },
  { script: 'return [1].remove(5)', error: '1:18: remove: element not found' },
  { script: 'return [].pop()', error: '1:14: pop: index -1 out of range: empty list' },
  { script: 'return [1].pop(3)', error: '1:15: pop: list index 3 out of range [-1:0]' },
  { script: 'return [1].insert("a", 1)', error: '1:18: insert: for parameter index: got string, want int' },
  { script: 'return [1].append()', error: '1:18: append: got 0 arguments, want 1' },
  { script: 'return [1].extend(5)', error: '1:18: extend: for parameter 1: got int, want iterable' },
  { script: 'return hash([])', error: '1:12: hash: got list, want string or bytes' },
  { script: 'return (1, 2, "x") in {(1, 2, "x"): 1}', value: 'True' },
  { script: 'return [[1, 2], [3]][0][1]', value: '2' },
  { script: 'return {"a": {"b": [1, 2]}}["a"]["b"][-1]', value: '2' },
]
