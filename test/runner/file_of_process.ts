import root, { type Test } from 'tap';

/** The `t` of `import t from 'tap'` in a process that runs several test files: the test that stands for the file that runs. */

let current: Test = root;

export function setFile(test: Test): void {
  current = test;
}

export default new Proxy({} as Test, {
  get(_, name) {
    const value = Reflect.get(current, name, current);
    return typeof value === 'function' ? value.bind(current) : value;
  },
});
